/* What happens to files as a whole: size, holes, names, times, links, status in old and new forms. */
#include "common.h"

#include <dlfcn.h>
#include <sys/statfs.h>
#include <sys/statvfs.h>
#include <sys/sysmacros.h>
#include <sys/time.h>
#include <sys/xattr.h>
#include <utime.h>

static long size_of(const char *name) {
    struct stat s;
    MUST(stat(in(name), &s));
    return s.st_size;
}

static void truncating(void) {
    char b[10];
    int fd = MUST(open(in("data.bin"), O_RDWR));
    MUST(ftruncate(fd, 1000));
    printf("%ld %zd\n", size_of("data.bin"), pread(fd, b, 10, 995));
    MUST(ftruncate(fd, 5000));
    printf("%ld %zd %d\n", size_of("data.bin"), pread(fd, b, 10, 4000), b[3]);
    CHECK(pwrite(fd, "tail", 4, 5000) == 4);
    MUST(close(fd));
    MUST(truncate(in("text.txt"), 77));
    MUST(truncate(in("numbers.txt"), 100000));
    TRY(truncate(in("absent"), 0));
    TRY(truncate(in("tree"), 0));
    TRY(truncate(in("text.txt"), -1));
    fd = MUST(open(in("text.txt"), O_RDONLY));
    TRY(ftruncate(fd, 5));
    MUST(close(fd));
    fd = MUST(open(in("buffered"), O_CREAT | O_RDWR, 0644));
    CHECK(write(fd, "written before the cut", 22) == 22);
    MUST(ftruncate(fd, 7));
    CHECK(write(fd, "X", 1) == 1);
    printf("%ld\n", size_of("buffered"));
    MUST(close(fd));
}

static void holes(void) {
    int fd = MUST(open(in("sparse"), O_CREAT | O_RDWR, 0644));
    CHECK(pwrite(fd, "data", 4, 1 << 20) == 4);
    MUST(ftruncate(fd, 3 << 20));
    off_t data = lseek(fd, 0, SEEK_DATA), hole = data == -1 ? -1 : lseek(fd, data, SEEK_HOLE);
    /* Allowed: exact answers, or "all data" (lseek(2)), or a refusal. */
    if (data == -1)
        CHECK(errno == EINVAL || errno == EOPNOTSUPP);
    else
        CHECK(data <= 1 << 20 && hole > 1 << 20 && hole <= 3 << 20);
    TRY(lseek(fd, 4 << 20, SEEK_DATA));
    char b[5] = {0};
    CHECK(pread(fd, b, 4, 1 << 20) == 4);
    puts(b);
    CHECK(pread(fd, b, 4, 5000) == 4);
    printf("%d%d\n", b[0], b[3]);
    MUST(close(fd));
}

static void beyond_four_gib(void) {
    int fd = MUST(open(in("giant"), O_CREAT | O_RDWR, 0644));
    off_t far = 5L << 30;
    CHECK(pwrite(fd, "far away", 8, far) == 8);
    printf("%ld\n", (long)lseek(fd, -8, SEEK_END));
    char b[9] = {0};
    CHECK(read(fd, b, 8) == 8);
    puts(b);
    CHECK(lseek(fd, far - 4, SEEK_SET) == far - 4);
    CHECK(read(fd, b, 8) == 8);
    printf("%d %s\n", b[0], b + 4);
    MUST(ftruncate(fd, (4L << 30) + 7));
    printf("%ld\n", size_of("giant"));
    FILE *f = MUST_PTR(fopen(in("giant"), "r+"));
    CHECK(fseeko(f, (4L << 30) + 1, SEEK_SET) == 0);
    fputs("stdio", f);
    printf("%ld\n", (long)ftello(f));
    fclose(f);
    CHECK(pread(fd, b, 8, 4L << 30) == 7);
    printf("%.5s\n", b + 1);
    MUST(close(fd));
}

static void allocating(void) {
    int fd = MUST(open(in("allocated"), O_CREAT | O_RDWR, 0644));
    int status = fallocate(fd, 0, 0, 100000);
    if (status == -1)
        CHECK(errno == EOPNOTSUPP || errno == ENOSYS);
    printf("%d\n", posix_fallocate(fd, 50000, 100000));
    printf("%ld\n", size_of("allocated"));
    CHECK(pwrite(fd, "mark", 4, 90000) == 4);
    status = fallocate(fd, FALLOC_FL_PUNCH_HOLE | FALLOC_FL_KEEP_SIZE, 80000, 20000);
    if (status == -1) {
        CHECK(errno == EOPNOTSUPP || errno == ENOSYS);
        CHECK(pwrite(fd, "\0\0\0\0", 4, 90000) == 4);
    }
    char b[4];
    CHECK(pread(fd, b, 4, 90000) == 4);
    printf("%d\n", b[0]);
    MUST(close(fd));
}

static void names_and_open_files(void) {
    char b[20] = {0};
    int old = MUST(open(in("text.txt"), O_RDWR));
    MUST(rename(in("table.csv"), in("text.txt")));
    CHECK(read(old, b, 5) == 5);
    puts(b);
    struct stat s;
    MUST(fstat(old, &s));
    printf("%ld links, %ld bytes\n", (long)s.st_nlink, (long)s.st_size);
    CHECK(pwrite(old, "gone", 4, 0) == 4);
    MUST(close(old));

    int fd = MUST(open(in("numbers.txt"), O_RDWR));
    MUST(unlink(in("numbers.txt")));
    CHECK(read(fd, b, 5) == 5);
    printf("%.5s\n", b);
    CHECK(pwrite(fd, "still writable", 14, 3) == 14);
    CHECK(pread(fd, b, 9, 0) == 9);
    printf("%.9s\n", b);
    MUST(fstat(fd, &s));
    printf("%ld links\n", (long)s.st_nlink);
    int again = MUST(open(in("numbers.txt"), O_CREAT | O_WRONLY | O_EXCL, 0600));
    CHECK(write(again, "another file", 12) == 12);
    MUST(close(again));
    CHECK(pread(fd, b, 4, 0) == 4);
    printf("%.4s\n", b);
    MUST(close(fd));

    fd = MUST(open(in("moved"), O_CREAT | O_RDWR, 0644));
    CHECK(write(fd, "before, ", 8) == 8);
    MUST(rename(in("moved"), in("moved-on")));
    CHECK(write(fd, "after", 5) == 5);
    MUST(close(fd));
    show("moved-on");
    TRY(rename(in("absent"), in("x")));
    TRY(rename(in("tree"), in("secret")));
    TRY(rename(in("secret"), in("tree")));
    TRY(rename(in("tree"), in("tree/b/x")));
    TRY(rename(in("secret"), in("secret")));
    TRY(rename(in("secret"), "/dev/shm/sluice-never"));
    TRY(unlink(in("tree")));
    TRY(rmdir(in("tree")));
    TRY(rmdir(in("secret")));
    TRY(remove(in("tree")));
    MUST(remove(in("secret")));
    MUST(mkdir(in("d"), 0711));
    MUST(remove(in("d")));
}

static void nameless(void) {
    int fd = open(data_directory, O_TMPFILE | O_RDWR, 0600);
    if (fd == -1) {
        printf("O_TMPFILE is refused or works\n");
        CHECK(errno == EOPNOTSUPP || errno == EISDIR || errno == ENOENT || errno == EINVAL);
        fd = MUST(open(in("named"), O_CREAT | O_EXCL | O_RDWR, 0600));
        MUST(unlink(in("named")));
    } else
        printf("O_TMPFILE is refused or works\n");
    char b[10] = {0};
    CHECK(write(fd, "invisible", 9) == 9);
    CHECK(pread(fd, b, 9, 0) == 9);
    puts(b);
    MUST(close(fd));
}

static void links(void) {
    char target[PATH_MAX] = {0};
    struct stat s;
    MUST(symlink("text.txt", in("s")));
    MUST(lstat(in("s"), &s));
    printf("%d %ld\n", S_ISLNK(s.st_mode), (long)s.st_size);
    MUST(stat(in("s"), &s));
    printf("%d\n", S_ISREG(s.st_mode));
    printf("%ld %s\n", MUST(readlink(in("s"), target, sizeof target)), target);
    printf("%ld\n", MUST(readlink(in("s"), target, 4)));
    TRY(readlink(in("text.txt"), target, 100));
    TRY(readlink(in("absent"), target, 100));
    TRY(symlink("x", in("text.txt")));
    TRY(stat(in("dangling"), &s));
    MUST(link(in("text.txt"), in("h")));
    MUST(stat(in("h"), &s));
    printf("%d\n", (int)s.st_nlink);
    int fd = MUST(open(in("h"), O_WRONLY | O_APPEND));
    CHECK(write(fd, "through the other name", 22) == 22);
    MUST(close(fd));
    MUST(unlink(in("text.txt")));
    MUST(stat(in("h"), &s));
    printf("%d %ld\n", (int)s.st_nlink, (long)s.st_size);
    TRY(link(in("tree"), in("t2")));
    TRY(link(in("h"), in("link")));
    TRY(link(in("h"), "/dev/shm/sluice-never"));
    MUST(symlink("loop2", in("loop1")));
    MUST(symlink("loop1", in("loop2")));
    TRY(open(in("loop1"), O_RDONLY));
    char very_long[5000];
    memset(very_long, 'l', sizeof very_long), very_long[4095] = 0;
    MUST(symlink(very_long, in("long-target")));
    printf("%ld\n", MUST(readlink(in("long-target"), target, sizeof target)));
    TRY(symlink("", in("empty-target")));
    MUST(symlink("tree/../tree/a", in("winding")));
    MUST(stat(in("winding/one.txt"), &s));
    MUST(unlink(in("winding")));
}

static void times_and_modes(void) {
    struct stat s;
    struct timespec exact[2] = {{1234567890, 123456789}, {1345678901, 987654321}};
    MUST(utimensat(AT_FDCWD, in("text.txt"), exact, 0));
    MUST(stat(in("text.txt"), &s));
    printf("%ld.%09ld %ld.%09ld\n", s.st_atim.tv_sec, s.st_atim.tv_nsec, s.st_mtim.tv_sec, s.st_mtim.tv_nsec);
    struct timespec partly[2] = {{0, UTIME_OMIT}, {1000000000, 0}};
    int fd = MUST(open(in("text.txt"), O_RDWR));
    MUST(futimens(fd, partly));
    MUST(fstat(fd, &s));
    printf("%ld\n", s.st_mtim.tv_sec);
    /* Times set after a write stay, though the write may still be on its way. */
    CHECK(pwrite(fd, "w", 1, 0) == 1);
    MUST(futimens(fd, exact));
    MUST(close(fd));
    MUST(stat(in("text.txt"), &s));
    printf("%ld\n", s.st_mtim.tv_sec);
    struct timeval tv[2] = {{1100000000, 5}, {1200000000, 250000}};
    MUST(utimes(in("empty"), tv));
    MUST(lutimes(in("link"), tv));
    MUST(lstat(in("link"), &s));
    printf("%ld.%09ld\n", s.st_mtim.tv_sec, s.st_mtim.tv_nsec);
    struct utimbuf seconds = {1, 2};
    MUST(utime(in("numbers.txt"), &seconds));
    MUST(stat(in("numbers.txt"), &s));
    printf("%ld\n", s.st_mtim.tv_sec);
    fd = MUST(open(in("numbers.txt"), O_RDWR));
    MUST(futimes(fd, tv));
    MUST(fchmod(fd, 0602));
    MUST(fchown(fd, -1, -1));
    MUST(fstat(fd, &s));
    printf("%o\n", s.st_mode);
    MUST(close(fd));
    MUST(chown(in("run.sh"), -1, -1));
    MUST(chmod(in("run.sh"), 04711));
    MUST(lchown(in("dangling"), -1, -1));
    TRY(chmod(in("absent"), 0600));
    TRY(utimensat(AT_FDCWD, in("absent"), NULL, 0));
    MUST(utimensat(AT_FDCWD, in("empty"), NULL, 0));
    MUST(stat(in("empty"), &s));
    printf("%d\n", s.st_mtim.tv_sec > 1700000000);
    TRY(access(in("text.txt"), R_OK | W_OK));
    TRY(access(in("absent"), F_OK));
    TRY(access(in("text.txt"), X_OK));
    TRY(eaccess(in("run.sh"), X_OK));
    TRY(access(in("tree"), R_OK | X_OK));
    TRY(access(in("text.txt"), 99));
}

static void print_status(const char *how, const struct stat *s) {
    printf("%s: %o %ld bytes, %ld links, %ld blocks of 512, mtime %ld, uid %d, device %d\n", how, s->st_mode,
           S_ISDIR(s->st_mode) ? 0L : (long)s->st_size, S_ISDIR(s->st_mode) ? 0L : (long)s->st_nlink,
           S_ISDIR(s->st_mode) ? 0L : (long)s->st_blocks, (long)s->st_mtime, s->st_uid, (int)s->st_rdev);
}

static void status_forms(void) {
    struct stat s;
    struct stat64 s64;
    const char *names[] = {"text.txt", "link", "tree", "run.sh", "empty", "."};
    /* Binaries from before glibc 2.33 call these; the library still exports them. */
    int (*xstat)(int, const char *, struct stat *) = dlsym(RTLD_DEFAULT, "__xstat");
    int (*lxstat)(int, const char *, struct stat *) = dlsym(RTLD_DEFAULT, "__lxstat");
    int (*fxstat)(int, int, struct stat *) = dlsym(RTLD_DEFAULT, "__fxstat");
    int (*fxstatat)(int, int, const char *, struct stat *, int) = dlsym(RTLD_DEFAULT, "__fxstatat");
    int (*xstat64)(int, const char *, struct stat64 *) = dlsym(RTLD_DEFAULT, "__xstat64");
    int (*fxstat64)(int, int, struct stat64 *) = dlsym(RTLD_DEFAULT, "__fxstat64");
    int (*lxstat64)(int, const char *, struct stat64 *) = dlsym(RTLD_DEFAULT, "__lxstat64");
    for (size_t i = 0; i < sizeof names / sizeof *names; i++) {
        printf("%s\n", names[i]);
        MUST(stat(in(names[i]), &s));
        ino_t inode = s.st_ino;
        print_status("stat", &s);
        MUST(stat64(in(names[i]), &s64));
        print_status("stat64", (struct stat *)&s64);
        MUST(lstat(in(names[i]), &s));
        print_status("lstat", &s);
        MUST(lstat64(in(names[i]), &s64));
        print_status("lstat64", (struct stat *)&s64);
        int fd = MUST(open(in(names[i]), O_RDONLY));
        MUST(fstat(fd, &s));
        print_status("fstat", &s);
        CHECK(s.st_ino == inode);
        MUST(fstat64(fd, &s64));
        print_status("fstat64", (struct stat *)&s64);
        MUST(fstatat(AT_FDCWD, in(names[i]), &s, 0));
        print_status("fstatat", &s);
        MUST(fstatat64(fd, "", &s64, AT_EMPTY_PATH));
        print_status("fstatat64 empty", (struct stat *)&s64);
        if (xstat && lxstat && fxstat && fxstatat && xstat64 && fxstat64 && lxstat64) {
            MUST(xstat(1, in(names[i]), &s));
            print_status("__xstat", &s);
            CHECK(s.st_ino == inode);
            MUST(lxstat(1, in(names[i]), &s));
            print_status("__lxstat", &s);
            MUST(fxstat(1, fd, &s));
            print_status("__fxstat", &s);
            MUST(fxstatat(1, AT_FDCWD, in(names[i]), &s, 0));
            print_status("__fxstatat", &s);
            MUST(xstat64(1, in(names[i]), &s64));
            print_status("__xstat64", (struct stat *)&s64);
            MUST(fxstat64(1, fd, &s64));
            print_status("__fxstat64", (struct stat *)&s64);
            MUST(lxstat64(1, in(names[i]), &s64));
            print_status("__lxstat64", (struct stat *)&s64);
        }
        struct statx x;
        MUST(statx(AT_FDCWD, in(names[i]), 0, STATX_BASIC_STATS, &x));
        printf("statx: %o %d\n", x.stx_mode, x.stx_ino == inode);
        MUST(statx(fd, "", AT_EMPTY_PATH, STATX_BASIC_STATS, &x));
        printf("statx empty: %o %ld\n", x.stx_mode, (long)x.stx_mtime.tv_sec);
        MUST(close(fd));
    }
    TRY(stat(in("absent"), &s));
    TRY(lstat(in("text.txt/x"), &s));
    TRY(stat(in("text.txt/"), &s));
    TRY(stat("", &s));
    TRY(fstat(999, &s));
    TRY(stat(in("tree/"), &s));
    TRY(lstat(in("dirlink/"), &s));
    printf("%d\n", S_ISDIR(s.st_mode));
    struct statfs f;
    MUST(statfs(in("text.txt"), &f));
    printf("%d\n", f.f_bsize > 0 && f.f_blocks > 0);
    int fd = MUST(open(in("text.txt"), O_RDONLY));
    MUST(fstatfs(fd, &f));
    struct statvfs v;
    MUST(fstatvfs(fd, &v));
    printf("%lu %d\n", v.f_namemax, v.f_frsize > 0);
    TRY(statvfs(in("absent"), &v));
}

static void special_files(void) {
    /* A service makes no devices; a refusal is right, and so is making them. */
    if (mkfifo(in("fifo"), 0644) == -1)
        CHECK(errno == EPERM || errno == EOPNOTSUPP || errno == ENOSYS);
    unlink(in("fifo"));
    if (mknod(in("null"), S_IFCHR | 0600, makedev(1, 3)) == -1)
        CHECK(errno == EPERM || errno == EOPNOTSUPP || errno == ENOSYS);
    unlink(in("null"));
    MUST(mknod(in("plain"), S_IFREG | 0640, 0));
    if (setxattr(in("text.txt"), "user.note", "value", 5, 0) == 0) {
        char value[10] = {0};
        printf("right or refused %d\n", getxattr(in("text.txt"), "user.note", value, 10) == 5 && !strcmp(value, "value"));
        MUST(removexattr(in("text.txt"), "user.note"));
    } else {
        CHECK(errno == EOPNOTSUPP || errno == ENOSYS || errno == EPERM);
        printf("right or refused %d\n", 1);
    }
}

int main(int argc, char **argv) {
    setvbuf(stdout, NULL, _IOLBF, 0);
    const struct part parts[] = {
        {"truncating", truncating}, {"holes", holes}, {"beyond-4-gib", beyond_four_gib},
        {"allocating", allocating}, {"names-and-open-files", names_and_open_files},
        {"nameless", nameless}, {"links", links}, {"times-and-modes", times_and_modes},
        {"status-forms", status_forms}, {"special-files", special_files}, {NULL, NULL}};
    return run_part(parts, argc, argv);
}
