/* mmap in its forms. A mapping that cannot be had must fail; one that was given must hold the bytes. */
#include "common.h"

#include <sys/mman.h>

static void private_map(void) {
    int fd = MUST(open(in("big.bin"), O_RDONLY));
    struct stat s;
    MUST(fstat(fd, &s));
    unsigned char *m = mmap(NULL, s.st_size, PROT_READ, MAP_PRIVATE, fd, 0);
    MUST(m == MAP_FAILED ? -1 : 0);
    unsigned long sum = 0;
    for (long i = 0; i < s.st_size; i++)
        sum = sum * 31 + m[i];
    printf("%lu\n", sum);
    MUST(munmap(m, s.st_size));
    m = mmap(NULL, 10000, PROT_READ | PROT_WRITE, MAP_PRIVATE, fd, 4096 * 5);
    MUST(m == MAP_FAILED ? -1 : 0);
    printf("%d %d\n", m[0], m[9999]);
    m[0] ^= 255;
    MUST(close(fd));
    printf("%d\n", m[1]);
    MUST(munmap(m, 10000));
}

static void shared_write(void) {
    int fd = MUST(open(in("data.bin"), O_RDWR));
    unsigned char *m = mmap(NULL, 100000, PROT_READ | PROT_WRITE, MAP_SHARED, fd, 8192);
    MUST(m == MAP_FAILED ? -1 : 0);
    memcpy(m + 100, "through the map", 15);
    MUST(msync(m, 100000, MS_SYNC));
    char b[16] = {0};
    CHECK(pread(fd, b, 15, 8192 + 100) == 15);
    puts(b);
    memcpy(m + 90000, "before munmap", 13);
    MUST(munmap(m, 100000));
    CHECK(pread(fd, b, 13, 8192 + 90000) == 13);
    printf("%.13s\n", b);
    MUST(close(fd));
}

static void left_mapped(void) {
    int fd = MUST(open(in("data.bin"), O_RDWR));
    char *m = mmap(NULL, 50000, PROT_READ | PROT_WRITE, MAP_SHARED, fd, 0);
    MUST(m == MAP_FAILED ? -1 : 0);
    MUST(close(fd));
    memcpy(m + 20000, "written back at exit", 20);
    puts("neither synchronised nor unmapped");
}

static void grown_file(void) {
    int fd = MUST(open(in("grown"), O_CREAT | O_RDWR, 0644));
    MUST(ftruncate(fd, 3 * 4096 + 100));
    unsigned char *m = mmap(NULL, 3 * 4096 + 100, PROT_READ | PROT_WRITE, MAP_SHARED, fd, 0);
    MUST(m == MAP_FAILED ? -1 : 0);
    fill(m, 0, 3 * 4096 + 100);
    MUST(msync(m, 4096, MS_ASYNC));
    MUST(munmap(m, 3 * 4096 + 100));
    struct stat s;
    MUST(fstat(fd, &s));
    printf("%ld\n", (long)s.st_size);
    MUST(close(fd));
}

static void write_then_map(void) {
    /* Buffered writes must be in the map; later reads must see what the map wrote. */
    int fd = MUST(open(in("both"), O_CREAT | O_RDWR, 0644));
    CHECK(write(fd, "0123456789abcdef", 16) == 16);
    char *m = mmap(NULL, 16, PROT_READ | PROT_WRITE, MAP_SHARED, fd, 0);
    MUST(m == MAP_FAILED ? -1 : 0);
    printf("%.16s\n", m);
    m[3] = 'X';
    MUST(msync(m, 16, MS_SYNC));
    char b[17] = {0};
    CHECK(pread(fd, b, 16, 0) == 16);
    puts(b);
    MUST(munmap(m, 16));
    MUST(close(fd));
}

static void two_processes(void) {
    int fd = MUST(open(in("data.bin"), O_RDWR));
    char *m = mmap(NULL, 8192, PROT_READ | PROT_WRITE, MAP_SHARED, fd, 0);
    MUST(m == MAP_FAILED ? -1 : 0);
    pid_t child = MUST(fork());
    if (child == 0) {
        memcpy(m + 4096, "child", 5);
        _exit(msync(m, 8192, MS_SYNC) ? 1 : 0);
    }
    reap(child, "child");
    printf("%.5s\n", m + 4096);
    memcpy(m + 100, "parent", 6);
    MUST(munmap(m, 8192));
    MUST(close(fd));
}

static void refusals(void) {
    int r = MUST(open(in("data.bin"), O_RDONLY)), w = MUST(open(in("text.txt"), O_WRONLY));
    int d = MUST(open(in("tree"), O_RDONLY)), e = MUST(open(in("empty"), O_RDWR));
    TRY(mmap(NULL, 100, PROT_WRITE, MAP_SHARED, r, 0));
    TRY(mmap(NULL, 100, PROT_READ, MAP_SHARED, w, 0));
    TRY(mmap(NULL, 100, PROT_READ, MAP_PRIVATE, d, 0));
    TRY(mmap(NULL, 0, PROT_READ, MAP_PRIVATE, r, 0));
    TRY(mmap(NULL, 100, PROT_READ, MAP_PRIVATE, r, 100));
    TRY(mmap(NULL, 100, PROT_READ, MAP_SHARED, e, 0) == MAP_FAILED ? -1 : 0);
    TRY(mmap(NULL, 100, PROT_READ, MAP_PRIVATE, 999, 0));
}

static void fixed_and_advice(void) {
    int fd = MUST(open(in("data.bin"), O_RDONLY));
    char *place = mmap(NULL, 65536, PROT_NONE, MAP_PRIVATE | MAP_ANONYMOUS, -1, 0);
    char *m = mmap(place + 4096, 8192, PROT_READ, MAP_PRIVATE | MAP_FIXED, fd, 4096);
    MUST(m == MAP_FAILED ? -1 : 0);
    CHECK(m == place + 4096);
    printf("%d\n", m[17]);
    MUST(madvise(m, 8192, MADV_SEQUENTIAL));
    MUST(mprotect(m, 4096, PROT_READ | PROT_WRITE));
    m[0] = 1;
    TRY(posix_fadvise(fd, 0, 0, POSIX_FADV_WILLNEED));
    TRY(readahead(fd, 0, 4096));
    m = mmap(NULL, 4096, PROT_READ, MAP_SHARED | MAP_POPULATE, fd, 1 << 20);
    MUST(m == MAP_FAILED ? -1 : 0);
    printf("%d %d %d\n", m[0], m[76], m[77]);
}

int main(int argc, char **argv) {
    setvbuf(stdout, NULL, _IOLBF, 0);
    const struct part parts[] = {
        {"private", private_map}, {"shared-write", shared_write}, {"left-mapped", left_mapped},
        {"grown-file", grown_file}, {"write-then-map", write_then_map}, {"two-processes", two_processes},
        {"refusals", refusals}, {"fixed-and-advice", fixed_and_advice}, {NULL, NULL}};
    return run_part(parts, argc, argv);
}
