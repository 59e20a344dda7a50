/* Sluice for programs: files of a service by their URIs, or below the mapped prefixes of sluice.toml.
 *
 * Functions that return a pointer return NULL on failure, all others -1. Then errno says why, as the call of
 * POSIX with the same name would, and sluice_error() says it in words. Handles may be used from several threads.
 * A handle that is NULL, or that was closed, is an error (EINVAL, EBADF), never a crash.
 *
 * Link with -lsluice_c, or with what `pkg-config --libs sluice_c` says.
 */
#ifndef SLUICE_H
#define SLUICE_H

#include <stddef.h>
#include <stdint.h>
#include <sys/types.h>

#ifdef __cplusplus
extern "C" {
#endif

/* An open file; an open listing. */
typedef struct sluice_file sluice_file;
typedef struct sluice_dir sluice_dir;

typedef struct sluice_stat_t {
    uint64_t size;             /* bytes */
    uint32_t mode;             /* type and permissions, as st_mode: S_ISDIR(mode) */
    uint32_t links;            /* names of the file */
    int64_t mtime_seconds;     /* last change of the content, since 1970 */
    int64_t mtime_nanoseconds; /* beyond the seconds */
    uint64_t inode;            /* identity within the service */
} sluice_stat_t;

/* The version of the library. */
const char *sluice_version(void);

/* The last error of this thread in words; "" if there was none. Valid until the thread's next call that fails. */
const char *sluice_error(void);

/* Opens a file. `flags` are those of open(2): O_RDONLY, O_WRONLY, O_RDWR, O_CREAT, O_EXCL, O_TRUNC, O_APPEND;
 * `mode` counts where a file is created, and is taken as it is (no umask). */
sluice_file *sluice_open(const char *name, int flags, uint32_t mode);

/* Reads up to `count` bytes at `offset`; fewer only at the end of the file, or before an error that the next
 * call tells. Data is read ahead where reads go on where the last one ended. */
ssize_t sluice_pread(sluice_file *file, void *buffer, size_t count, int64_t offset);

/* Writes at `offset`, or at the end of what was opened with O_APPEND. Writes are sent in the background:
 * an error may be told by a later call, at the latest by sluice_sync or sluice_close. */
ssize_t sluice_pwrite(sluice_file *file, const void *buffer, size_t count, int64_t offset);

/* The size in bytes, own writes included. */
int64_t sluice_size(sluice_file *file);

/* Cuts or extends with zeros. */
int sluice_truncate(sluice_file *file, int64_t size);

/* Makes all that was written durable, as fsync(2). */
int sluice_sync(sluice_file *file);

/* Ends the use of a file. The handle is gone, also if this fails because earlier writes have failed. */
int sluice_close(sluice_file *file);

int sluice_fstat(sluice_file *file, sluice_stat_t *stat);

/* Symbolic links are followed. */
int sluice_stat(const char *name, sluice_stat_t *stat);

/* Lists a directory. sluice_list_next returns one name after the other, without . and .., in no order; valid until
 * the next call with the same listing. At the end it returns NULL with errno 0. */
sluice_dir *sluice_list(const char *name);
const char *sluice_list_next(sluice_dir *listing);
int sluice_list_close(sluice_dir *listing);

int sluice_mkdir(const char *name, uint32_t mode);

/* Removes a file or an empty directory, as remove(3). */
int sluice_remove(const char *name);

/* Renames within one service, replacing what is there, as rename(2). */
int sluice_rename(const char *from, const char *to);

#ifdef __cplusplus
}
#endif

#endif
