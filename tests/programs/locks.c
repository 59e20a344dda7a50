/* Locks between processes. A lock that is granted twice is silent corruption. */
#include "common.h"

#include <sys/file.h>

/* Runs `try` in a child and prints what it returned. */
static void in_child(const char *what, int (*try)(void)) {
    fflush(stdout);
    pid_t child = MUST(fork());
    if (child == 0)
        _exit(try());
    reap(child, what);
}

static int record_lock(int fd, int command, int type, off_t start, off_t length) {
    struct flock lock = {.l_type = type, .l_whence = SEEK_SET, .l_start = start, .l_len = length};
    return fcntl(fd, command, &lock);
}

static int lock_first_half(void) {
    int fd = MUST(open(in("data.bin"), O_RDWR));
    return record_lock(fd, F_SETLK, F_WRLCK, 0, 1000) == 0 ? 0 : errno == EAGAIN || errno == EACCES ? 11 : 99;
}

static int lock_second_half(void) {
    int fd = MUST(open(in("data.bin"), O_RDWR));
    return record_lock(fd, F_SETLK, F_WRLCK, 1000, 1000) == 0 ? 0 : errno == EAGAIN || errno == EACCES ? 11 : 99;
}

static int share_first_half(void) {
    int fd = MUST(open(in("data.bin"), O_RDWR));
    return record_lock(fd, F_SETLK, F_RDLCK, 0, 1000) == 0 ? 0 : errno == EAGAIN || errno == EACCES ? 11 : 99;
}

static int who_holds(void) {
    int fd = MUST(open(in("data.bin"), O_RDWR));
    struct flock lock = {.l_type = F_WRLCK, .l_whence = SEEK_SET, .l_start = 10, .l_len = 10};
    MUST(fcntl(fd, F_GETLK, &lock));
    return lock.l_type == F_UNLCK ? 0 : lock.l_type == F_WRLCK ? 1 : 2;
}

static void record_locks(void) {
    int fd = MUST(open(in("data.bin"), O_RDWR));
    MUST(record_lock(fd, F_SETLK, F_WRLCK, 0, 1000));
    in_child("the same range", lock_first_half);
    in_child("another range", lock_second_half);
    in_child("a shared lock", share_first_half);
    in_child("the question", who_holds);
    MUST(record_lock(fd, F_SETLK, F_RDLCK, 0, 1000));
    in_child("a shared lock beside a shared one", share_first_half);
    in_child("an exclusive one beside a shared one", lock_first_half);
    MUST(record_lock(fd, F_SETLK, F_UNLCK, 0, 0));
    in_child("after unlocking", lock_first_half);
    in_child("the question after unlocking", who_holds);
    MUST(record_lock(fd, F_SETLKW, F_WRLCK, 0, 0));
    in_child("under a lock to the end", lock_second_half);
    /* POSIX: closing any descriptor of the file drops the process's locks. */
    int other = MUST(open(in("data.bin"), O_RDONLY));
    MUST(close(other));
    in_child("after closing another descriptor", lock_first_half);
    int reader = MUST(open(in("text.txt"), O_RDONLY));
    TRY(record_lock(reader, F_SETLK, F_WRLCK, 0, 1));
    MUST(lockf(fd, F_TLOCK, 10));
    MUST(lockf(fd, F_ULOCK, 10));
}

static int try_flock(void) {
    int fd = MUST(open(in("text.txt"), O_RDONLY));
    return flock(fd, LOCK_EX | LOCK_NB) == 0 ? 0 : errno == EWOULDBLOCK ? 11 : 99;
}

static int try_shared_flock(void) {
    int fd = MUST(open(in("text.txt"), O_RDONLY));
    return flock(fd, LOCK_SH | LOCK_NB) == 0 ? 0 : errno == EWOULDBLOCK ? 11 : 99;
}

static void whole_file_locks(void) {
    int fd = MUST(open(in("text.txt"), O_RDONLY));
    MUST(flock(fd, LOCK_EX));
    in_child("exclusive", try_flock);
    MUST(flock(fd, LOCK_SH));
    in_child("exclusive beside shared", try_flock);
    in_child("shared beside shared", try_shared_flock);
    MUST(flock(fd, LOCK_UN));
    in_child("after unlocking", try_flock);
    MUST(flock(fd, LOCK_EX));
    int twin = MUST(dup(fd));
    MUST(close(fd));
    in_child("held by a duplicate", try_flock);
    MUST(close(twin));
    in_child("after the last close", try_flock);
    TRY(flock(999, LOCK_EX));
}

static void open_file_locks(void) {
    int a = MUST(open(in("data.bin"), O_RDWR)), b = MUST(open(in("data.bin"), O_RDWR));
    int status = record_lock(a, F_OFD_SETLK, F_WRLCK, 0, 100);
    if (status == -1) {
        perror("open file description locks");
        exit(1);
    }
    TRY(record_lock(b, F_OFD_SETLK, F_WRLCK, 0, 100));
    TRY(record_lock(b, F_OFD_SETLK, F_WRLCK, 100, 100));
    MUST(close(a));
    TRY(record_lock(b, F_OFD_SETLK, F_WRLCK, 0, 100));
}

static void counter(void) {
    /* Four processes increment a number under a lock; a lost lock loses increments. */
    put("counter", "0");
    pid_t children[4];
    for (int i = 0; i < 4; i++) {
        children[i] = MUST(fork());
        if (children[i] == 0) {
            int fd = MUST(open(in("counter"), O_RDWR));
            for (int round = 0; round < 25; round++) {
                char text[20] = {0};
                MUST(record_lock(fd, F_SETLKW, F_WRLCK, 0, 0));
                MUST(pread(fd, text, sizeof text - 1, 0));
                int length = snprintf(text, sizeof text, "%d", atoi(text) + 1);
                CHECK(pwrite(fd, text, length, 0) == length);
                MUST(record_lock(fd, F_SETLK, F_UNLCK, 0, 0));
            }
            _exit(0);
        }
    }
    for (int i = 0; i < 4; i++)
        reap(children[i], "writer");
    show("counter");
}

int main(int argc, char **argv) {
    setvbuf(stdout, NULL, _IOLBF, 0);
    const struct part parts[] = {
        {"record", record_locks}, {"whole-file", whole_file_locks}, {"open-file", open_file_locks},
        {"counter", counter}, {NULL, NULL}};
    return run_part(parts, argc, argv);
}
