/* One system or library call per invocation, its outcome as one line of JSON.
 *
 *   probe CALL PATH [ARGUMENT…]
 *
 * Calls on descriptors open PATH first (read-write where they write). A call that fails also says so
 * on standard error, so that a run with Sluice that fails where the native one does not is told from
 * one that is silently wrong. `probe list` names the calls. */
#include "common.h"

#include <dirent.h>
#include <dlfcn.h>
#include <poll.h>
#include <stdarg.h>
#include <sys/file.h>
#include <sys/ioctl.h>
#include <sys/mman.h>
#include <sys/sendfile.h>
#include <sys/statfs.h>
#include <sys/statvfs.h>
#include <sys/sysmacros.h>
#include <sys/time.h>
#include <sys/uio.h>
#include <sys/xattr.h>
#include <utime.h>

static const char *path;
static char **extra;
static int extras;
static char buffer[1 << 16];

static const char *text(int index) { return index < extras ? extra[index] : ""; }
static long number(int index, long otherwise) { return index < extras ? strtol(extra[index], NULL, 0) : otherwise; }

static int readable(void) { return MUST(open(path, O_RDONLY)); }
static int writable(void) { return MUST(open(path, O_RDWR)); }

/* Fields that the probed call adds to its line. */
static char fields[1 << 17];

static void add(const char *format, ...) __attribute__((format(printf, 1, 2)));

static void add(const char *format, ...) {
    size_t at = strlen(fields);
    va_list arguments;
    va_start(arguments, format);
    vsnprintf(fields + at, sizeof fields - at, format, arguments);
    va_end(arguments);
}

static void add_bytes(const char *bytes, long count) {
    add(", \"bytes\": \"");
    for (long i = 0; i < count && i < 64; i++)
        add("%02x", (unsigned char)bytes[i]);
    add("\"");
}

/* A descriptor's number is no result; that there is one is. */
static long descriptor(int fd) {
    if (fd < 0)
        return fd;
    int saved = errno;
    add(", \"cloexec\": %d, \"flags\": %d", fcntl(fd, F_GETFD), fcntl(fd, F_GETFL) & (O_ACCMODE | O_APPEND));
    errno = saved;
    return 0;
}

static long with_stat(long result, const struct stat *s) {
    if (result == 0) {
        int directory = S_ISDIR(s->st_mode);
        add(", \"mode\": \"%o\", \"size\": %ld, \"links\": %ld, \"uid\": %d, \"mtime\": %ld", s->st_mode,
            directory ? 0L : (long)s->st_size, directory ? 0L : (long)s->st_nlink, s->st_uid,
            directory ? 0L : (long)s->st_mtime);
    }
    return result;
}

static long with_bytes(long result) {
    if (result > 0)
        add_bytes(buffer, result);
    return result;
}

static long pointer(const void *p) { return p ? 0 : -1; }
static void *old(const char *name) { return MUST_PTR(dlsym(RTLD_DEFAULT, name)); }

/* Each P(...) is a function without arguments that makes the one call. */
#define P(name, ...)                                                                               \
    static long p_##name(void) { __VA_ARGS__ }

P(open, return descriptor(open(path, number(0, 0), number(1, 0644)));)
P(open64, return descriptor(open64(path, number(0, 0), number(1, 0644)));)
P(openat, int d = open(text(2), O_RDONLY | O_DIRECTORY); return descriptor(openat(d, path, number(0, 0), number(1, 0644)));)
P(open_2, int (*f)(const char *, int) = old("__open_2"); return descriptor(f(path, number(0, 0)));)
P(open64_2, int (*f)(const char *, int) = old("__open64_2"); return descriptor(f(path, number(0, 0)));)
P(openat_2, int (*f)(int, const char *, int) = old("__openat_2"); return descriptor(f(AT_FDCWD, path, number(0, 0)));)
P(creat, return descriptor(creat(path, number(0, 0644)));)
P(creat64, return descriptor(creat64(path, number(0, 0644)));)
P(fopen, FILE *f = fopen(path, text(0)); if (!f) return -1; return descriptor(fileno(f));)
P(fopen64, FILE *f = fopen64(path, text(0)); if (!f) return -1; return descriptor(fileno(f));)
P(freopen, FILE *f = freopen(path, text(0), stdin); if (!f) return -1; return descriptor(fileno(f));)
P(opendir, return pointer(opendir(path));)
P(close, int fd = readable(); return close(fd) + close(fd);)

P(stat, struct stat s; return with_stat(stat(path, &s), &s);)
P(stat64, struct stat64 s; return with_stat(stat64(path, &s), (struct stat *)&s);)
P(lstat, struct stat s; return with_stat(lstat(path, &s), &s);)
P(fstat, struct stat s; return with_stat(fstat(readable(), &s), &s);)
P(fstat64, struct stat64 s; return with_stat(fstat64(readable(), &s), (struct stat *)&s);)
P(fstatat, struct stat s; return with_stat(fstatat(AT_FDCWD, path, &s, number(0, 0)), &s);)
P(fstatat_empty, struct stat s; return with_stat(fstatat(readable(), "", &s, AT_EMPTY_PATH), &s);)
P(xstat, int (*f)(int, const char *, struct stat *) = old("__xstat"); struct stat s; return with_stat(f(1, path, &s), &s);)
P(lxstat, int (*f)(int, const char *, struct stat *) = old("__lxstat"); struct stat s; return with_stat(f(1, path, &s), &s);)
P(fxstat, int (*f)(int, int, struct stat *) = old("__fxstat"); struct stat s; return with_stat(f(1, readable(), &s), &s);)
P(fxstatat, int (*f)(int, int, const char *, struct stat *, int) = old("__fxstatat"); struct stat s; return with_stat(f(1, AT_FDCWD, path, &s, 0), &s);)
P(xstat64, int (*f)(int, const char *, struct stat *) = old("__xstat64"); struct stat s; return with_stat(f(1, path, &s), &s);)
P(lxstat64, int (*f)(int, const char *, struct stat *) = old("__lxstat64"); struct stat s; return with_stat(f(1, path, &s), &s);)
P(fxstat64, int (*f)(int, int, struct stat *) = old("__fxstat64"); struct stat s; return with_stat(f(1, readable(), &s), &s);)
P(statx, struct statx s; long r = statx(AT_FDCWD, path, number(0, 0), STATX_BASIC_STATS, &s);
  if (r == 0) add(", \"mode\": \"%o\", \"basic\": %d", s.stx_mode, (s.stx_mask & STATX_BASIC_STATS) == STATX_BASIC_STATS);
  return r;)
P(access, return access(path, number(0, F_OK));)
P(eaccess, return eaccess(path, number(0, F_OK));)
P(faccessat, return faccessat(AT_FDCWD, path, number(0, F_OK), number(1, 0));)
P(statfs, struct statfs s; return statfs(path, &s);)
P(fstatfs, struct statfs s; return fstatfs(readable(), &s);)
P(statvfs, struct statvfs s; long r = statvfs(path, &s); if (r == 0) add(", \"namemax\": %lu", s.f_namemax); return r;)
P(fstatvfs, struct statvfs s; return fstatvfs(readable(), &s);)
P(pathconf, return pathconf(path, _PC_NAME_MAX);)
P(fpathconf, return fpathconf(readable(), _PC_NAME_MAX);)

P(read, return with_bytes(read(readable(), buffer, number(0, 16)));)
P(read_chk, ssize_t (*f)(int, void *, size_t, size_t) = old("__read_chk"); return with_bytes(f(readable(), buffer, number(0, 16), sizeof buffer));)
P(pread, return with_bytes(pread(readable(), buffer, number(0, 16), number(1, 0)));)
P(pread64, return with_bytes(pread64(readable(), buffer, number(0, 16), number(1, 0)));)
P(pread_chk, ssize_t (*f)(int, void *, size_t, off_t, size_t) = old("__pread_chk"); return with_bytes(f(readable(), buffer, number(0, 16), number(1, 0), sizeof buffer));)
P(readv, struct iovec v[2] = {{buffer, 3}, {buffer + 3, number(0, 16)}}; return with_bytes(readv(readable(), v, 2));)
P(preadv, struct iovec v[2] = {{buffer, 3}, {buffer + 3, number(0, 16)}}; return with_bytes(preadv(readable(), v, 2, number(1, 0)));)
P(preadv2, struct iovec v[2] = {{buffer, 3}, {buffer + 3, number(0, 16)}}; return with_bytes(preadv2(readable(), v, 2, number(1, 0), number(2, 0)));)
P(fread, FILE *f = MUST_PTR(fopen(path, "r")); long n = fread(buffer, 1, number(0, 16), f); add(", \"eof\": %d, \"error\": %d", feof(f) != 0, ferror(f) != 0); return with_bytes(n);)
P(fgets, FILE *f = MUST_PTR(fopen(path, "r")); char *line = fgets(buffer, number(0, 64), f); return line ? with_bytes(strlen(line)) : -1;)
P(fgetc, FILE *f = MUST_PTR(fopen(path, "r")); return fgetc(f);)
P(getline, FILE *f = MUST_PTR(fopen(path, "r")); char *line = NULL; size_t size = 0; return getline(&line, &size, f);)
P(fscanf, FILE *f = MUST_PTR(fopen(path, "r")); return fscanf(f, "%63s", buffer);)
P(write, return write(writable(), text(0), strlen(text(0)));)
P(write_append, return write(MUST(open(path, O_WRONLY | O_APPEND)), text(0), strlen(text(0)));)
P(write_readonly, return write(readable(), "x", 1);)
P(read_writeonly, return read(MUST(open(path, O_WRONLY)), buffer, 1);)
P(pwrite, return pwrite(writable(), text(0), strlen(text(0)), number(1, 0));)
P(pwrite64, return pwrite64(writable(), text(0), strlen(text(0)), number(1, 0));)
P(writev, struct iovec v[2] = {{(char *)text(0), strlen(text(0))}, {(char *)text(1), strlen(text(1))}}; return writev(writable(), v, 2);)
P(pwritev, struct iovec v[2] = {{(char *)text(0), strlen(text(0))}, {(char *)text(1), strlen(text(1))}}; return pwritev(writable(), v, 2, number(2, 0));)
P(pwritev2, struct iovec v = {(char *)text(0), strlen(text(0))}; return pwritev2(writable(), &v, 1, number(1, 0), number(2, 0));)
P(fwrite, FILE *f = MUST_PTR(fopen(path, "r+")); long n = fwrite(text(0), 1, strlen(text(0)), f); return fclose(f) ? -1 : n;)
P(fprintf, FILE *f = MUST_PTR(fopen(path, "a")); long n = fprintf(f, "%s %d\n", text(0), 7); return fclose(f) ? -1 : n;)
P(fputc, FILE *f = MUST_PTR(fopen(path, "r+")); long n = fputc('#', f); return fclose(f) ? -1 : n;)
P(dprintf, return dprintf(writable(), "%s-%d", text(0), 5);)
P(lseek, return lseek(writable(), number(0, 0), number(1, 0));)
P(lseek64, return lseek64(readable(), number(0, 0), number(1, 0));)
P(fseek, FILE *f = MUST_PTR(fopen(path, "r")); return fseek(f, number(0, 0), number(1, 0)) ? -1 : ftell(f);)
P(fseeko64, FILE *f = MUST_PTR(fopen64(path, "r")); return fseeko64(f, number(0, 0), number(1, 0)) ? -1 : ftello64(f);)
P(truncate, return truncate(path, number(0, 0));)
P(truncate64, return truncate64(path, number(0, 0));)
P(ftruncate, return ftruncate(writable(), number(0, 0));)
P(ftruncate64, return ftruncate64(writable(), number(0, 0));)
P(ftruncate_readonly, return ftruncate(readable(), 0);)
P(fsync, return fsync(writable());)
P(fdatasync, return fdatasync(writable());)
P(syncfs, return syncfs(readable());)
P(sync_file_range, return sync_file_range(writable(), 0, 0, SYNC_FILE_RANGE_WRITE);)
P(posix_fadvise, return posix_fadvise(readable(), 0, 0, number(0, POSIX_FADV_SEQUENTIAL));)
P(posix_fallocate, return posix_fallocate(writable(), number(0, 0), number(1, 1));)
P(fallocate, return fallocate(writable(), number(2, 0), number(0, 0), number(1, 1));)
P(readahead, return readahead(readable(), 0, 4096);)
P(copy_file_range, off_t a = 0; off_t b = 0; return copy_file_range(readable(), &a, MUST(open(text(0), O_CREAT | O_WRONLY, 0644)), &b, number(1, 100), 0);)
P(sendfile, off_t a = 0; return sendfile(MUST(open(text(0), O_CREAT | O_WRONLY, 0644)), readable(), &a, number(1, 100));)
P(splice, int e[2]; MUST(pipe(e)); return splice(readable(), NULL, e[1], NULL, number(0, 100), 0);)
P(mmap, char *m = mmap(NULL, number(0, 100), number(1, PROT_READ), number(2, MAP_PRIVATE), number(3, 0) ? writable() : readable(), 0); if (m == MAP_FAILED) return -1; add_bytes(m, 8); return 0;)
P(fionread, int n = 0; long r = ioctl(readable(), FIONREAD, &n); add(", \"available\": %d", n); return r;)
P(fioclex, int fd = readable(); long r = ioctl(fd, FIOCLEX); return descriptor(fd) + r;)
P(isatty, return isatty(readable()) ? 1 : -1;)
P(poll, struct pollfd p = {readable(), POLLIN | POLLOUT, 0}; long r = poll(&p, 1, 0); add(", \"revents\": %d", p.revents); return r;)

P(mkdir, return mkdir(path, number(0, 0755));)
P(mkdirat, return mkdirat(AT_FDCWD, path, number(0, 0755));)
P(rmdir, return rmdir(path);)
P(unlink, return unlink(path);)
P(unlinkat, return unlinkat(AT_FDCWD, path, number(0, 0));)
P(remove, return remove(path);)
P(rename, return rename(path, text(0));)
P(renameat, return renameat(AT_FDCWD, path, AT_FDCWD, text(0));)
P(renameat2, return renameat2(AT_FDCWD, path, AT_FDCWD, text(0), number(1, 0));)
P(link, return link(path, text(0));)
P(linkat, return linkat(AT_FDCWD, path, AT_FDCWD, text(0), number(1, 0));)
P(symlink, return symlink(text(0), path);)
P(symlinkat, return symlinkat(text(0), AT_FDCWD, path);)
P(readlink, return with_bytes(readlink(path, buffer, number(0, sizeof buffer)));)
P(readlink_chk, ssize_t (*f)(const char *, char *, size_t, size_t) = old("__readlink_chk"); return with_bytes(f(path, buffer, 100, sizeof buffer));)
P(realpath, char *r = realpath(path, NULL); if (!r) return -1; add(", \"path\": \"%s\"", r); return 0;)
P(realpath_chk, char *(*f)(const char *, char *, size_t) = old("__realpath_chk"); char *r = f(path, buffer, sizeof buffer); if (!r) return -1; add(", \"path\": \"%s\"", r); return 0;)
P(chdir, long r = chdir(path); if (r == 0) add(", \"here\": \"%s\"", getcwd(buffer, sizeof buffer)); return r;)
P(fchdir, return fchdir(readable());)
P(readdir, DIR *d = opendir(path); if (!d) return -1; long n = 0; while (readdir(d)) n++; return n;)
P(readdir64, DIR *d = opendir(path); if (!d) return -1; long n = 0; while (readdir64(d)) n++; return n;)
P(scandir, struct dirent **list; return scandir(path, &list, NULL, alphasort);)
P(mkstemp, return descriptor(mkstemp((char *)path));)
P(mkdtemp, return pointer(mkdtemp((char *)path));)
P(mkfifo, return mkfifo(path, 0644);)
P(mknod, return mknod(path, S_IFREG | 0640, 0);)

P(chmod, return chmod(path, number(0, 0600));)
P(fchmod, return fchmod(readable(), number(0, 0600));)
P(fchmodat, return fchmodat(AT_FDCWD, path, number(0, 0600), 0);)
P(chown, return chown(path, -1, -1);)
P(lchown, return lchown(path, -1, -1);)
P(fchown, return fchown(readable(), -1, -1);)
P(utime, struct utimbuf t = {number(0, 0), number(0, 0)}; return utime(path, &t);)
P(utimes, struct timeval t[2] = {{number(0, 0), 0}, {number(0, 0), 0}}; return utimes(path, t);)
P(lutimes, struct timeval t[2] = {{number(0, 0), 0}, {number(0, 0), 0}}; return lutimes(path, t);)
P(futimes, struct timeval t[2] = {{number(0, 0), 0}, {number(0, 0), 0}}; return futimes(readable(), t);)
P(utimensat, struct timespec t[2] = {{0, UTIME_OMIT}, {number(0, 0), 5}}; return utimensat(AT_FDCWD, path, t, number(1, 0));)
P(futimens, struct timespec t[2] = {{0, UTIME_OMIT}, {number(0, 0), 5}}; return futimens(readable(), t);)
P(getxattr, return getxattr(path, text(0), buffer, sizeof buffer);)
P(listxattr, return listxattr(path, buffer, sizeof buffer);)
P(removexattr, return removexattr(path, text(0));)

P(dup, int fd = readable(); MUST(lseek(fd, 5, SEEK_SET)); int d = dup(fd); return lseek(d, 0, SEEK_CUR) + descriptor(d);)
P(dup2, int fd = readable(); return dup2(fd, 77) == 77 ? with_bytes(read(77, buffer, 4)) : -1;)
P(dup3, return descriptor(dup3(readable(), 77, O_CLOEXEC));)
P(dup3_same, int fd = readable(); return dup3(fd, fd, 0);)
P(fcntl_dupfd, return fcntl(readable(), F_DUPFD, 90);)
P(fcntl_dupfd_cloexec, return descriptor(fcntl(readable(), F_DUPFD_CLOEXEC, 90));)
P(fcntl_getfl, return fcntl(MUST(open(path, number(0, 0), 0644)), F_GETFL) & (O_ACCMODE | O_APPEND | O_NONBLOCK);)
P(fcntl_setfl, int fd = writable(); MUST(fcntl(fd, F_SETFL, O_APPEND)); return fcntl(fd, F_GETFL) & (O_ACCMODE | O_APPEND);)
P(fcntl_getlk, struct flock l = {.l_type = F_WRLCK}; long r = fcntl(writable(), F_GETLK, &l); add(", \"type\": %d", l.l_type); return r;)
P(fcntl_setlk, struct flock l = {.l_type = number(0, F_WRLCK)}; return fcntl(writable(), F_SETLK, &l);)
P(fcntl_setlk_readonly, struct flock l = {.l_type = F_WRLCK}; return fcntl(readable(), F_SETLK, &l);)
P(lockf, return lockf(writable(), F_TLOCK, 0);)
P(flock, return flock(readable(), LOCK_EX | LOCK_NB);)
P(close_range, int fd = readable(); close_range(fd, fd, 0); return read(fd, buffer, 1);)

#undef P
#define P(name) {#name, p_##name}
static const struct {
    const char *name;
    long (*call)(void);
} PROBES[] = {
    P(open), P(open64), P(openat), P(open_2), P(open64_2), P(openat_2), P(creat), P(creat64), P(fopen),
    P(fopen64), P(freopen), P(opendir), P(close), P(stat), P(stat64), P(lstat), P(fstat), P(fstat64),
    P(fstatat), P(fstatat_empty), P(xstat), P(lxstat), P(fxstat), P(fxstatat), P(xstat64), P(lxstat64),
    P(fxstat64), P(statx), P(access), P(eaccess), P(faccessat), P(statfs), P(fstatfs), P(statvfs),
    P(fstatvfs), P(pathconf), P(fpathconf), P(read), P(read_chk), P(pread), P(pread64), P(pread_chk),
    P(readv), P(preadv), P(preadv2), P(fread), P(fgets), P(fgetc), P(getline), P(fscanf), P(write),
    P(write_append), P(write_readonly), P(read_writeonly), P(pwrite), P(pwrite64), P(writev), P(pwritev),
    P(pwritev2), P(fwrite), P(fprintf), P(fputc), P(dprintf), P(lseek), P(lseek64), P(fseek), P(fseeko64),
    P(truncate), P(truncate64), P(ftruncate), P(ftruncate64), P(ftruncate_readonly), P(fsync),
    P(fdatasync), P(syncfs), P(sync_file_range), P(posix_fadvise), P(posix_fallocate), P(fallocate),
    P(readahead), P(copy_file_range), P(sendfile), P(splice), P(mmap), P(fionread), P(fioclex), P(isatty),
    P(poll), P(mkdir), P(mkdirat), P(rmdir), P(unlink), P(unlinkat), P(remove), P(rename), P(renameat),
    P(renameat2), P(link), P(linkat), P(symlink), P(symlinkat), P(readlink), P(readlink_chk), P(realpath),
    P(realpath_chk), P(chdir), P(fchdir), P(readdir), P(readdir64), P(scandir), P(mkstemp), P(mkdtemp),
    P(mkfifo), P(mknod), P(chmod), P(fchmod), P(fchmodat), P(chown), P(lchown), P(fchown), P(utime),
    P(utimes), P(lutimes), P(futimes), P(utimensat), P(futimens), P(getxattr), P(listxattr),
    P(removexattr), P(dup), P(dup2), P(dup3), P(dup3_same), P(fcntl_dupfd), P(fcntl_dupfd_cloexec),
    P(fcntl_getfl), P(fcntl_setfl), P(fcntl_getlk), P(fcntl_setlk), P(fcntl_setlk_readonly), P(lockf),
    P(flock), P(close_range),
};

int main(int argc, char **argv) {
    size_t count = sizeof PROBES / sizeof *PROBES;
    if (argc < 3) {
        for (size_t i = 0; i < count; i++)
            puts(PROBES[i].name);
        return argc == 2 && strcmp(argv[1], "list") == 0 ? 0 : 2;
    }
    umask(022);
    path = argv[2], extra = argv + 3, extras = argc - 3;
    for (size_t i = 0; i < count; i++) {
        if (strcmp(PROBES[i].name, argv[1]) != 0)
            continue;
        errno = 0;
        long result = PROBES[i].call();
        int error = errno;
        printf("{\"call\": \"%s\", \"result\": %ld, \"errno\": \"%s\"%s}\n", argv[1], result,
               result == -1 ? strerrorname_np(error) : "", fields);
        if (result == -1)
            fprintf(stderr, "%s: %s\n", argv[1], strerrorname_np(error));
        return 0;
    }
    fprintf(stderr, "no such call: %s\n", argv[1]);
    return 2;
}
