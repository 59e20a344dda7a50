/* Reads and writes that are not plain: vectors, positions, copies inside the kernel, asynchronous. */
#include "common.h"

#include <aio.h>
#include <sys/sendfile.h>
#include <sys/socket.h>
#include <sys/uio.h>

static void vectors(void) {
    unsigned char a[1000], b[70000], c[3], a2[1000], b2[70000], c2[3];
    fill(a, 0, sizeof a), fill(b, sizeof a, sizeof b), fill(c, sizeof a + sizeof b, sizeof c);
    long total = sizeof a + sizeof b + sizeof c;
    struct iovec out[] = {{a, sizeof a}, {b, sizeof b}, {c, sizeof c}, {NULL, 0}};
    struct iovec back[] = {{a2, sizeof a2}, {NULL, 0}, {b2, sizeof b2}, {c2, sizeof c2}};
    int fd = MUST(open(in("vectors"), O_CREAT | O_RDWR | O_TRUNC, 0644));
    CHECK(writev(fd, out, 4) == total);
    CHECK(pwritev(fd, out, 3, 100000) == total);
    MUST(lseek(fd, 0, SEEK_SET));
    CHECK(readv(fd, back, 4) == total);
    CHECK(!memcmp(a, a2, sizeof a) && !memcmp(b, b2, sizeof b) && !memcmp(c, c2, sizeof c));
    memset(b2, 0, sizeof b2);
    CHECK(preadv(fd, back, 4, 100000) == total);
    CHECK(!memcmp(b, b2, sizeof b));
    printf("%ld\n", (long)lseek(fd, 0, SEEK_CUR));
    TRY(preadv2(fd, back, 4, 100000, 0));
    TRY(preadv2(fd, back, 4, -1, 0));
    TRY(pwritev2(fd, out, 1, 200000, 0));
    TRY(pwritev2(fd, out, 1, 0, RWF_DSYNC));
    volatile int too_few = -1, too_many = 2000;
    TRY(readv(fd, back, too_few));
    TRY(preadv(fd, back, 4, 300000));
    TRY(preadv(fd, back, 4, -5));
    TRY(writev(fd, out, too_many));
    MUST(close(fd));
}

static void positions(void) {
    char b[100];
    int fd = MUST(open(in("data.bin"), O_RDWR));
    struct stat s;
    MUST(fstat(fd, &s));
    TRY(pread(fd, b, 100, s.st_size - 7));
    TRY(pread(fd, b, 100, s.st_size));
    TRY(pread(fd, b, 100, s.st_size + 100));
    TRY(pread(fd, b, 0, 0));
    TRY(pread(fd, b, 5, -1));
    TRY(pwrite(fd, "middle", 6, 5000));
    TRY(pwrite(fd, "past the end", 12, s.st_size + 5000));
    TRY(pread(fd, b, 5, s.st_size + 10));
    printf("%d\n", b[0]);
    TRY(lseek(fd, 0, SEEK_CUR));
    TRY(lseek(fd, 100, SEEK_END));
    TRY(read(fd, b, 10));
    TRY(lseek(fd, -1, SEEK_SET));
    TRY(lseek(fd, 0, 99));
    TRY(lseek(fd, 10, SEEK_SET));
    TRY(read(fd, b, 3));
    TRY(lseek(fd, -5, SEEK_CUR));
    TRY(write(fd, "replaced", 8));
    TRY(lseek(fd, 0, SEEK_CUR));
    TRY(read(fd, NULL, 0));
    MUST(close(fd));
    fd = MUST(open(in("data.bin"), O_RDWR | O_APPEND));
    /* Linux: pwrite on an O_APPEND descriptor appends, whatever the offset (pwrite(2), BUGS). */
    TRY(pwrite(fd, "appended", 8, 0));
    MUST(close(fd));
}

static void bad_addresses(void) {
    int fd = MUST(open(in("data.bin"), O_RDWR));
    void *volatile nowhere = (void *)16;
    TRY(read(fd, nowhere, 10));
    TRY(write(fd, nowhere, 10));
    TRY(pread(fd, nowhere, 10, 0));
    TRY(open(nowhere, O_RDONLY));
    MUST(close(fd));
}

static void one_byte_at_a_time(void) {
    int from = MUST(open(in("text.txt"), O_RDONLY)), to = MUST(open(in("bytes"), O_CREAT | O_WRONLY, 0644));
    char c;
    long count = 0;
    while (MUST(read(from, &c, 1)) == 1) {
        CHECK(write(to, &c, 1) == 1);
        count++;
    }
    MUST(close(to));
    printf("%ld\n", count);
    int fd = MUST(open(in("bytes"), O_RDWR));
    for (long at = 0; at < count; at += 777) {
        MUST(lseek(fd, at, SEEK_SET));
        CHECK(read(fd, &c, 1) == 1);
        MUST(lseek(fd, -1, SEEK_CUR));
        c ^= 32;
        CHECK(write(fd, &c, 1) == 1);
    }
    MUST(close(fd));
}

static void alternating(void) {
    /* Reads must see what was written a moment ago, through any descriptor of this process. */
    int a = MUST(open(in("shared"), O_CREAT | O_RDWR, 0644)), b = MUST(open(in("shared"), O_RDWR));
    for (int i = 0; i < 300; i++) {
        char wrote[16], got[16];
        int length = snprintf(wrote, sizeof wrote, "round %d\n", i);
        CHECK(write(a, wrote, length) == length);
        CHECK(read(b, got, sizeof got) == length);
        CHECK(memcmp(wrote, got, length) == 0);
        struct stat s;
        MUST(stat(in("shared"), &s));
        CHECK(s.st_size == lseek(a, 0, SEEK_CUR));
    }
    CHECK(pwrite(b, "START", 5, 0) == 5);
    char got[6] = {0};
    CHECK(pread(a, got, 5, 0) == 5);
    puts(got);
    MUST(ftruncate(b, 3));
    printf("%zd\n", pread(a, got, 5, 0));
    MUST(close(a));
    MUST(close(b));
}

static void kernel_copies(void) {
    int from = MUST(open(in("data.bin"), O_RDONLY)), to = MUST(open(in("copied"), O_CREAT | O_RDWR, 0644));
    off_t at = 1000, out = 50;
    ssize_t count = copy_file_range(from, &at, to, &out, 5000, 0);
    /* EXDEV, ENOSYS and EINVAL are answers that every caller must cope with. */
    if (count == -1 && errno != EXDEV && errno != ENOSYS && errno != EINVAL && errno != EOPNOTSUPP) {
        perror("copy_file_range");
        exit(1);
    }
    if (count == -1) {
        unsigned char block[5000];
        CHECK(pread(from, block, 5000, 1000) == 5000);
        CHECK(pwrite(to, block, 5000, 50) == 5000);
    } else
        CHECK(count == 5000 && at == 6000 && out == 5050);
    at = 10;
    MUST(lseek(to, 0, SEEK_END));
    count = sendfile(to, from, &at, 3000);
    if (count == -1 && errno != EINVAL && errno != ENOSYS) {
        perror("sendfile");
        exit(1);
    }
    if (count == -1) {
        unsigned char block[3000];
        CHECK(pread(from, block, 3000, 10) == 3000);
        CHECK(write(to, block, 3000) == 3000);
    } else
        CHECK(count == 3000 && at == 3010);
    int pair[2];
    MUST(socketpair(AF_UNIX, SOCK_STREAM, 0, pair));
    at = 77;
    count = sendfile(pair[0], from, &at, 500);
    if (count == -1 && errno != EINVAL && errno != ENOSYS) {
        perror("sendfile to a socket");
        exit(1);
    }
    if (count > 0) {
        unsigned char got[500], want[500];
        CHECK(recv(pair[1], got, 500, MSG_WAITALL) == 500);
        CHECK(pread(from, want, 500, 77) == 500);
        CHECK(memcmp(got, want, 500) == 0);
    }
    printf("%ld\n", (long)lseek(to, 0, SEEK_END));
    MUST(close(to));
    MUST(close(from));
}

static void spliced(void) {
    int from = MUST(open(in("data.bin"), O_RDONLY)), to = MUST(open(in("spliced"), O_CREAT | O_WRONLY, 0644));
    int ends[2];
    MUST(pipe(ends));
    ssize_t count = splice(from, NULL, ends[1], NULL, 4000, 0);
    if (count == -1 && errno != EINVAL && errno != ENOSYS) {
        perror("splice");
        exit(1);
    }
    unsigned char block[4000];
    if (count == -1) {
        CHECK(read(from, block, 4000) == 4000);
        CHECK(write(ends[1], block, 4000) == 4000);
    } else
        CHECK(count == 4000);
    count = splice(ends[0], NULL, to, NULL, 4000, 0);
    if (count == -1 && errno != EINVAL && errno != ENOSYS) {
        perror("splice");
        exit(1);
    }
    if (count == -1) {
        CHECK(read(ends[0], block, 4000) == 4000);
        CHECK(write(to, block, 4000) == 4000);
    }
    printf("%ld\n", (long)lseek(from, 0, SEEK_CUR));
    MUST(close(to));
}

static void asynchronous(void) {
    static unsigned char blocks[8][10000], back[8][10000];
    struct aiocb requests[8];
    int fd = MUST(open(in("async"), O_CREAT | O_RDWR, 0644));
    for (int i = 0; i < 8; i++) {
        fill(blocks[i], i * 10000, 10000);
        requests[i] = (struct aiocb){.aio_fildes = fd, .aio_buf = blocks[i], .aio_nbytes = 10000, .aio_offset = i * 10000};
        MUST(aio_write(&requests[i]));
    }
    for (int i = 0; i < 8; i++) {
        const struct aiocb *one[] = {&requests[i]};
        while (aio_error(&requests[i]) == EINPROGRESS)
            aio_suspend(one, 1, NULL);
        errno = aio_error(&requests[i]);
        if (errno) {
            perror("aio_write");
            exit(1);
        }
        CHECK(aio_return(&requests[i]) == 10000);
    }
    for (int i = 0; i < 8; i++) {
        requests[i] = (struct aiocb){.aio_fildes = fd, .aio_buf = back[i], .aio_nbytes = 10000, .aio_offset = i * 10000, .aio_lio_opcode = LIO_READ};
    }
    struct aiocb *list[8];
    for (int i = 0; i < 8; i++)
        list[i] = &requests[i];
    MUST(lio_listio(LIO_WAIT, list, 8, NULL));
    for (int i = 0; i < 8; i++)
        CHECK(aio_return(&requests[i]) == 10000 && memcmp(blocks[i], back[i], 10000) == 0);
    struct aiocb sync = {.aio_fildes = fd};
    MUST(aio_fsync(O_SYNC, &sync));
    while (aio_error(&sync) == EINPROGRESS)
        usleep(1000);
    printf("%d\n", aio_error(&sync));
    MUST(close(fd));
}

/* Many requests at once, of two files and both directions, with some that cannot be. */
static void listed(void) {
    enum { COUNT = 300 };
    static unsigned char blocks[COUNT][100], back[COUNT][100];
    static struct aiocb requests[COUNT];
    static struct aiocb *list[COUNT];
    int fd = MUST(open(in("listed"), O_CREAT | O_RDWR, 0644));
    int other = MUST(open(in("listed"), O_RDWR)), second = MUST(open(in("listed2"), O_CREAT | O_RDWR, 0644));
    /* What was written before, by whatever descriptor, is there; and what was read ahead is forgotten. */
    static unsigned char whole[COUNT * 200];
    fill(whole, 7, sizeof whole);
    CHECK(write(fd, whole, sizeof whole) == sizeof whole);
    CHECK(pread(other, whole, 4000, 0) == 4000);
    for (int i = 0; i < COUNT; i++) {
        fill(blocks[i], i * 31, 100);
        requests[i] = (struct aiocb){.aio_fildes = i % 3 ? fd : second, .aio_buf = blocks[i], .aio_nbytes = 100,
                                     .aio_offset = i * 200, .aio_lio_opcode = i % 50 == 49 ? LIO_NOP : LIO_WRITE};
        list[i] = i % 40 == 39 ? NULL : &requests[i];
    }
    TRY(lio_listio(LIO_WAIT, list, COUNT, NULL));
    unsigned long sum = 0;
    CHECK(pread(other, whole, sizeof whole, 0) == sizeof whole);
    for (size_t i = 0; i < sizeof whole; i++) sum = sum * 31 + whole[i];
    printf("%lx\n", sum);
    for (int i = 0; i < COUNT; i++) {
        requests[i].aio_buf = back[i];
        requests[i].aio_lio_opcode = LIO_READ;
        list[i] = &requests[i];
    }
    requests[5].aio_offset = -1;
    requests[7].aio_offset = COUNT * 200 - 30;
    requests[8].aio_offset = COUNT * 1000;
    int writer = MUST(open(in("listed"), O_WRONLY));
    requests[10].aio_fildes = writer;
    requests[11].aio_nbytes = 0;
    TRY(lio_listio(LIO_WAIT, list, COUNT, NULL));
    for (int i = 0; i < 13; i++) printf("%d %zd\n", aio_error(&requests[i]), aio_return(&requests[i]));
    sum = 0;
    for (size_t i = 0; i < sizeof back; i++) sum = sum * 31 + ((unsigned char *)back)[i];
    printf("%lx\n", sum);
    int reader = MUST(open(in("listed"), O_RDONLY)), appender = MUST(open(in("listed2"), O_WRONLY | O_APPEND));
    for (int i = 0; i < 4; i++)
        requests[i] = (struct aiocb){.aio_fildes = i % 2 ? reader : appender, .aio_buf = blocks[i], .aio_nbytes = 100, .aio_lio_opcode = LIO_WRITE};
    TRY(lio_listio(LIO_WAIT, list, 4, NULL));
    for (int i = 0; i < 4; i++) printf("%d %zd\n", aio_error(&requests[i]), aio_return(&requests[i]));
    printf("%ld\n", (long)MUST(lseek(second, 0, SEEK_END)));
    volatile int mode = 9;
    TRY(lio_listio(mode, list, 4, NULL));
    TRY(lio_listio(LIO_WAIT, list, 0, NULL));
    MUST(close(reader));
    MUST(close(writer));
    MUST(close(appender));
    MUST(close(second));
    MUST(close(other));
    MUST(close(fd));
}

static void large_blocks(void) {
    long size = 5 * 1024 * 1024 + 13;
    unsigned char *block = MUST_PTR(malloc(size)), *back = MUST_PTR(malloc(size));
    fill(block, 0, size);
    int fd = MUST(open(in("large"), O_CREAT | O_RDWR, 0644));
    CHECK(write(fd, block, size) == size);
    CHECK(pread(fd, back, size, 0) == size);
    CHECK(memcmp(block, back, size) == 0);
    CHECK(pwrite(fd, block, size, size) == size);
    MUST(lseek(fd, size - 1000, SEEK_SET));
    long got = 0;
    ssize_t count;
    while ((count = MUST(read(fd, back, size))) > 0)
        got += count;
    printf("%ld\n", got);
    MUST(close(fd));
}

int main(int argc, char **argv) {
    setvbuf(stdout, NULL, _IOLBF, 0);
    const struct part parts[] = {
        {"vectors", vectors}, {"positions", positions}, {"bad-addresses", bad_addresses}, {"one-byte", one_byte_at_a_time},
        {"alternating", alternating}, {"kernel-copies", kernel_copies}, {"spliced", spliced},
        {"asynchronous", asynchronous}, {"listed", listed}, {"large-blocks", large_blocks}, {NULL, NULL}};
    return run_part(parts, argc, argv);
}
