/*
 * Uses nct.h as a C program would: views of both widths, every method, an aggregate function of its
 * own, and all that is refused. Compares with a loop that moves one byte at a time. Exits with 0 and
 * says "ok" if all is as it should be.
 */
#define _GNU_SOURCE
#include "nct.h"

#include <errno.h>
#include <fcntl.h>
#include <stddef.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/socket.h>
#include <unistd.h>

#define CHECK(condition)                                                                         \
    do {                                                                                         \
        if (!(condition)) {                                                                      \
            fprintf(stderr, "%s:%d: %s (errno %d: %s; last error: %s)\n", __FILE__, __LINE__,    \
                    #condition, errno, strerror(errno), nct_last_error());                       \
            exit(1);                                                                             \
        }                                                                                        \
    } while (0)

/* The call fails with this errno, and says something. */
#define REFUSED(call, failure, wanted)                                                           \
    do {                                                                                         \
        errno = 0;                                                                               \
        CHECK((call) == (failure));                                                              \
        CHECK(errno == (wanted));                                                                \
        CHECK(nct_last_error()[0] != '\0');                                                      \
    } while (0)

#define FAILED ((size_t)-1)
#define FILE_BYTES 60000
#define DATA_BYTES 3000

static unsigned char content[4 * FILE_BYTES];

/* Offset in the file of a byte of the view's data. */
static uint64_t place(uint64_t initial, const nct_tuple *list, int count, uint64_t at)
{
    uint64_t file = initial;
    for (int n = 0;; n = (n + 1) % count) {
        if (at < list[n].size)
            return file + at;
        at -= list[n].size;
        file += (uint64_t)list[n].size + list[n].deltaOffset;
    }
}

static unsigned asked;
static unsigned asked_for_writes;

/* Joins two of three tuples; now and then stops within one, or takes bytes of a hole along. */
static int two_of_three(const nct_step *step, nct_decision *decision, void *context)
{
    unsigned *turn = context;
    asked++;
    asked_for_writes += step->isWrite != 0;
    if (decision->bytesToAccOnTuple != step->bytesMax)
        exit(3);
    if (++*turn % 3 != 0)
        return 1;
    if (*turn % 2 == 0 && step->bytesMax > 1)
        decision->bytesToAccOnTuple = step->bytesMax / 2;
    else if (step->completesTuple && step->deltaOffset > 4
             && step->buffsize > step->logicalBytesToAccNext + 8)
        decision->holeBytesToAggrOnTuple = 4;
    return 0;
}

static int too_much(const nct_step *step, nct_decision *decision, void *context)
{
    (void)context;
    decision->bytesToAccOnTuple = step->bytesMax + 1;
    return 0;
}

static void compare(int fd, int method, const nct_tuple *list, int count)
{
    static unsigned char data[DATA_BYTES], buffer[4096], got[4 * FILE_BYTES];
    nct_info info = { 0.0, 118000000, 2, 0.00008, 4096, 0, method };
    if (method > NCT_ADAPTIVE)
        info.dsMethod = NCT_NAIVE;
    /* The methods must not need more than the list that was given. */
    nct_tuple *copy = malloc(sizeof *copy * (size_t)count);
    CHECK(copy != NULL);
    memcpy(copy, list, sizeof *copy * (size_t)count);
    nct_view view = nct_create_view(17, sizeof buffer, method % 2 ? buffer : NULL, count, copy, &info);
    CHECK(view != NULL);
    free(copy);
    unsigned turn = 0;
    if (method > NCT_ADAPTIVE)
        CHECK(nct_set_aggregate(view, two_of_three, &turn) == 0);
    CHECK(nct_set_locking(view, method % 3) == 0);

    for (unsigned n = 0; n < FILE_BYTES; n++)
        content[n] = (unsigned char)(n * 31 % 251);
    memset(content + FILE_BYTES, 0, sizeof content - FILE_BYTES);
    CHECK(ftruncate(fd, 0) == 0);
    CHECK(pwrite(fd, content, FILE_BYTES, 0) == FILE_BYTES);

    for (size_t offset = 0; offset < 100; offset += 33) {
        size_t there = 0;
        while (there < DATA_BYTES && place(17, list, count, offset + there) < FILE_BYTES)
            there++;
        memset(data, 0xEE, sizeof data);
        CHECK(nct_read(fd, data, offset, DATA_BYTES, view) == there);
        for (size_t n = 0; n < there; n++)
            CHECK(data[n] == content[place(17, list, count, offset + n)]);
    }

    size_t size = FILE_BYTES;
    for (size_t n = 0; n < DATA_BYTES; n++) {
        uint64_t at = place(17, list, count, 5 + n);
        data[n] = (unsigned char)(n * 7 + 1);
        CHECK(at < sizeof content);
        content[at] = data[n];
        if (at >= size)
            size = at + 1;
    }
    CHECK(nct_write(fd, data, 5, DATA_BYTES, view) == DATA_BYTES);
    CHECK(pread(fd, got, sizeof got, 0) == (ssize_t)size);
    CHECK(memcmp(got, content, size) == 0);
    nct_destroy_view(view);
}

static void refusals(int fd)
{
    static unsigned char buffer[512], data[64];
    nct_tuple list[] = { { 8, 8 } };
    nct_info info = { 0.0, 0, 0, 0.0, 0, 0, NCT_ROMIO };

    REFUSED(nct_create_view(0, 512, buffer, 1, NULL, NULL), NULL, EINVAL);
    REFUSED(nct_create_view(0, 512, buffer, 0, list, NULL), NULL, EINVAL);
    REFUSED(nct_create_view(0, 512, buffer, -1, list, NULL), NULL, EINVAL);
    REFUSED(nct_create_view(0, (size_t)1 << 62, NULL, 1, list, NULL), NULL, EINVAL);
    REFUSED(nct_create_view(0, FAILED, buffer, 1, list, NULL), NULL, EINVAL);
    info.dsMethod = 99;
    REFUSED(nct_create_view(0, 512, buffer, 1, list, &info), NULL, EINVAL);
    info.dsMethod = NCT_SIMPLE_PM;
    REFUSED(nct_create_view(0, 512, buffer, 1, list, &info), NULL, EINVAL);

    nct_tuple64 large[] = { { 8, UINT64_MAX - 7 }, { 1ull << 62, 1ull << 62 }, { 8, (uint64_t)-4 } };
    for (int n = 0; n < 3; n++)
        REFUSED(nct_create_view64(0, 512, buffer, 1, &large[n], NULL), NULL, EOVERFLOW);
    REFUSED(nct_create_view64(UINT64_MAX, 512, buffer, 1, &large[0], NULL), NULL, EOVERFLOW);
    REFUSED(nct_create_view64(0, 512, buffer, UINT64_MAX / 8, large, NULL), NULL, EINVAL);

    nct_view view = nct_create_view(0, 512, buffer, 1, list, NULL);
    CHECK(view != NULL);
    REFUSED(nct_read(fd, data, 0, 8, NULL), FAILED, EINVAL);
    REFUSED(nct_write(fd, data, 0, 8, NULL), FAILED, EINVAL);
    REFUSED(nct_read(fd, NULL, 0, 8, view), FAILED, EFAULT);
    REFUSED(nct_write(fd, NULL, 0, 8, view), FAILED, EFAULT);
    CHECK(nct_read(fd, NULL, 0, 0, view) == 0);
    CHECK(nct_write(fd, NULL, 0, 0, view) == 0);
    REFUSED(nct_read(fd, data, 0, FAILED, view), FAILED, EINVAL);
    REFUSED(nct_read(fd, buffer + 100, 0, 8, view), FAILED, EINVAL);
    REFUSED(nct_write(fd, buffer + 511, 0, 8, view), FAILED, EINVAL);
    REFUSED(nct_read(fd, data, UINT64_MAX - 3, 8, view), FAILED, EFBIG);
    REFUSED(nct_read(-1, data, 0, 8, view), FAILED, EBADF);
    REFUSED(nct_read(9999, data, 0, 8, view), FAILED, EBADF);
    REFUSED(nct_set_locking(view, 7), -1, EINVAL);
    REFUSED(nct_set_aggregate(view, NULL, NULL), -1, EINVAL);
    CHECK(nct_set_aggregate(view, too_much, NULL) == 0);
    REFUSED(nct_read(fd, data, 0, 8, view), FAILED, EINVAL);
    CHECK(strstr(nct_last_error(), "user-supplied") != NULL);
    nct_destroy_view(view);
    nct_destroy_view(NULL);

    int pipes[2], sockets[2];
    CHECK(pipe(pipes) == 0);
    CHECK(socketpair(AF_UNIX, SOCK_STREAM, 0, sockets) == 0);
    view = nct_create_view(0, 512, NULL, 1, list, NULL);
    CHECK(view != NULL);
    REFUSED(nct_read(pipes[0], data, 0, 8, view), FAILED, ESPIPE);
    REFUSED(nct_write(pipes[1], data, 0, 8, view), FAILED, ESPIPE);
    REFUSED(nct_read(sockets[0], data, 0, 8, view), FAILED, ESPIPE);
    REFUSED(nct_write(sockets[0], data, 0, 8, view), FAILED, ESPIPE);
    REFUSED(nct_read(pipes[0], data, 0, 0, view), FAILED, ESPIPE);
    int full = open("/dev/full", O_RDWR);
    CHECK(full >= 0);
    REFUSED(nct_write(full, data, 0, 64, view), FAILED, ENOSPC);
    nct_destroy_view(view);

    /* No byte of buffer: an error where the method needs one. One byte is little, but enough. */
    info.dsMethod = NCT_ROMIO;
    view = nct_create_view(0, 0, NULL, 1, list, &info);
    CHECK(view != NULL);
    REFUSED(nct_read(fd, data, 0, 8, view), FAILED, EINVAL);
    nct_destroy_view(view);
    view = nct_create_view(0, 1, NULL, 1, list, &info);
    CHECK(view != NULL);
    CHECK(nct_read(fd, data, 0, 64, view) == 64);
    nct_destroy_view(view);
}

static void beyond_4_gib(int fd)
{
    nct_tuple64 list[] = { { 4, 6ull << 30 }, { 3, 100 } };
    nct_view view = nct_create_view64(1, 64, NULL, 2, list, NULL);
    CHECK(view != NULL);
    CHECK(nct_write(fd, "abcdefghij", 2, 10, view) == 10);
    char got[10];
    CHECK(pread(fd, got, 3, (6ll << 30) + 5) == 3);
    CHECK(memcmp(got, "cde", 3) == 0);
    CHECK(pread(fd, got, 4, (6ll << 30) + 108) == 4);
    CHECK(memcmp(got, "fghi", 4) == 0);
    CHECK(nct_read(fd, got, 2, 10, view) == 10);
    CHECK(memcmp(got, "abcdefghij", 10) == 0);
    nct_destroy_view(view);
}

int main(int argc, char **argv)
{
    CHECK(argc == 2);
    int fd = open(argv[1], O_RDWR | O_CREAT | O_TRUNC, 0600);
    CHECK(fd >= 0);

    /* For the test that compares both sides of the interface. */
    printf("tuple %zu\ntuple64 %zu\ninfo %zu dsMethod %zu\nstep %zu buffsize %zu\ndecision %zu\n",
           sizeof(nct_tuple), sizeof(nct_tuple64), sizeof(nct_info), offsetof(nct_info, dsMethod),
           sizeof(nct_step), offsetof(nct_step, buffsize), sizeof(nct_decision));

    const nct_tuple strided[] = { { 8, 24 } };
    const nct_tuple nested[] = { { 12, 20 }, { 12, 20 }, { 12, 600 } };
    const nct_tuple mixed[] = { { 1, 0 }, { 0, 9 }, { 700, 3 }, { 30, 900 }, { 5, 5 }, { 0, 0 } };
    const nct_tuple large[] = { { 6000, 50 } };
    for (int method = NCT_NAIVE; method <= NCT_ADAPTIVE + 1; method++) {
        compare(fd, method, strided, 1);
        compare(fd, method, nested, 3);
        compare(fd, method, mixed, 6);
        compare(fd, method, large, 1);
    }
    CHECK(asked > 100 && asked_for_writes > 100);
    refusals(fd);
    beyond_4_gib(fd);
    close(fd);
    puts("ok");
    return 0;
}
