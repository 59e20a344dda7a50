/* Whatever a program gets wrong is an error that says so. Ends with "ok". */
#include <errno.h>
#include <fcntl.h>
#include <pthread.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/wait.h>
#include <unistd.h>

#include <sluice.h>

static int wrong;

#define EXPECT(what) \
    do { \
        if (!(what)) { \
            printf("line %d: %s is not so; errno %d, %s\n", __LINE__, #what, errno, sluice_error()); \
            wrong = 1; \
        } \
    } while (0)
#define FAILS(call, number, words) \
    do { \
        errno = 0; \
        EXPECT(call); \
        EXPECT(errno == (number)); \
        EXPECT(strstr(sluice_error(), words) != NULL); \
    } while (0)

static char name[1000];
static sluice_file *shared;

static void *hammer(void *argument)
{
    char byte = *(char *) argument;
    char read[64];
    for (int i = 0; i < 200; i++) {
        char data[64];
        memset(data, byte, sizeof data);
        EXPECT(sluice_pwrite(shared, data, sizeof data, byte * 64) == 64);
        EXPECT(sluice_pread(shared, read, sizeof read, byte * 64) == 64 && memcmp(read, data, 64) == 0);
    }
    return NULL;
}

int main(int argc, char **argv)
{
    (void) argc;
    char buffer[16] = "0123456789abcdef";
    sluice_stat_t stat;
    snprintf(name, sizeof name, "%s/bad", argv[1]);

    EXPECT(strcmp(sluice_error(), "") == 0);
    FAILS(sluice_open(NULL, O_RDONLY, 0) == NULL, EINVAL, "`name` is NULL");
    FAILS(sluice_open("", O_RDONLY, 0) == NULL, EINVAL, "neither a URI");
    FAILS(sluice_open("scdc+bogus://x/y", O_RDONLY, 0) == NULL, EPROTONOSUPPORT, "scdc+bogus");
    FAILS(sluice_open("scdc:///here/y", O_RDONLY, 0) == NULL, EOPNOTSUPP, "no stores");
    FAILS(sluice_open("scdc+ssh://x/y", O_RDONLY, 0) == NULL, EOPNOTSUPP, "scdc+ssh");
    FAILS(sluice_open("scdc+uds:///no/such.sock/store/x", O_RDONLY, 0) == NULL, ECONNREFUSED, "/no/such.sock");
    FAILS(sluice_open(name, O_RDONLY, 0) == NULL, ENOENT, "/store/bad");
    FAILS(sluice_open(argv[1], O_RDONLY, 0) == NULL, EISDIR, "directory");
    FAILS(sluice_stat(name, NULL) == -1, ENOENT, "/store/bad");
    FAILS(sluice_stat(argv[1], NULL) == -1, EINVAL, "`stat` is NULL");
    FAILS(sluice_stat(NULL, &stat) == -1, EINVAL, "`name` is NULL");
    FAILS(sluice_list(name) == NULL, ENOENT, "/store/bad");
    FAILS(sluice_list_next(NULL) == NULL, EINVAL, "NULL");
    FAILS(sluice_list_close(NULL) == -1, EINVAL, "NULL");
    FAILS(sluice_mkdir(NULL, 0755) == -1, EINVAL, "NULL");
    FAILS(sluice_remove(name) == -1, ENOENT, "/store/bad");
    FAILS(sluice_rename(name, NULL) == -1, EINVAL, "NULL");
    FAILS(sluice_pread(NULL, buffer, 1, 0) == -1, EINVAL, "`file` is NULL");
    FAILS(sluice_pread((sluice_file *) buffer, buffer, 1, 0) == -1, EBADF, "no open file");
    FAILS(sluice_close((sluice_file *) -1) == -1, EBADF, "no open file");

    sluice_file *file = sluice_open(name, O_RDWR | O_CREAT | O_EXCL, 0600);
    EXPECT(file != NULL);
    FAILS(sluice_open(name, O_RDWR | O_CREAT | O_EXCL, 0600) == NULL, EEXIST, "/store/bad");
    EXPECT(sluice_pwrite(file, buffer, 16, 0) == 16);
    FAILS(sluice_pwrite(file, NULL, 16, 0) == -1, EINVAL, "`buffer` is NULL");
    FAILS(sluice_pwrite(file, buffer, 16, -1) == -1, EINVAL, "out of range");
    FAILS(sluice_pread(file, buffer, (size_t) -1, 0) == -1, EINVAL, "out of range");
    FAILS(sluice_pread(file, buffer, 1, INT64_MIN) == -1, EINVAL, "out of range");
    FAILS(sluice_truncate(file, -5) == -1, EINVAL, "out of range");
    FAILS(sluice_list_next((sluice_dir *) file) == NULL, EBADF, "no open listing");
    EXPECT(sluice_pread(file, NULL, 0, 0) == 0);
    EXPECT(sluice_pread(file, buffer, 16, 100) == 0);
    EXPECT(sluice_pread(file, buffer, 16, 10) == 6);
    EXPECT(sluice_fstat(file, &stat) == 0 && stat.size == 16);
    EXPECT(sluice_close(file) == 0);
    FAILS(sluice_close(file) == -1, EBADF, "closed already");
    FAILS(sluice_size(file) == -1, EBADF, "closed already");

    file = sluice_open(name, O_RDONLY, 0);
    FAILS(sluice_pwrite(file, buffer, 1, 0) == -1, EBADF, "pwrite");
    EXPECT(sluice_close(file) == 0);
    file = sluice_open(name, O_WRONLY | O_APPEND, 0);
    EXPECT(sluice_pwrite(file, "end", 3, 0) == 3);
    EXPECT(sluice_close(file) == 0);
    EXPECT(sluice_stat(name, &stat) == 0 && stat.size == 19);

    /* Many threads on one handle, each with bytes of its own. */
    shared = sluice_open(name, O_RDWR, 0);
    pthread_t threads[8];
    char bytes[8] = {1, 2, 3, 4, 5, 6, 7, 8};
    for (int i = 0; i < 8; i++)
        pthread_create(&threads[i], NULL, hammer, &bytes[i]);
    for (int i = 0; i < 8; i++)
        pthread_join(threads[i], NULL);

    /* A child speaks on a connection of its own; its parent's goes on. */
    EXPECT(sluice_sync(shared) == 0);
    pid_t child = fork();
    if (child == 0) {
        char one[64];
        int fine = sluice_stat(name, &stat) == 0 && sluice_pread(shared, one, 64, 64) == 64 && one[0] == 1;
        _exit(fine ? 0 : 1);
    }
    int status;
    EXPECT(waitpid(child, &status, 0) == child && WIFEXITED(status) && WEXITSTATUS(status) == 0);
    EXPECT(sluice_pread(shared, buffer, 16, 128) == 16 && buffer[0] == 2);
    EXPECT(sluice_close(shared) == 0);
    EXPECT(sluice_remove(name) == 0);

    /* Many openings: none is left behind. */
    for (int i = 0; i < 2000; i++) {
        file = sluice_open(name, O_RDWR | O_CREAT, 0600);
        EXPECT(sluice_close(file) == 0);
    }
    if (!wrong)
        printf("ok\n");
    return wrong;
}
