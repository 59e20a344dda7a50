/* views MODE ...: a program that knows nothing of views, and reads or writes files that are some.
 *
 * read PATH SIZE                reads SIZE bytes, 1 MiB at a time
 * write PATH SIZE               writes SIZE bytes of structures, 1 MiB at a time
 * hand N AOS SOA B              writes N structures to three files, one for each layout, as a program
 *                               would that keeps three by itself: one file after the other
 * hand2 N AOS B                 the same for two
 * pick PATH N                   reads N structures and keeps the second number of each
 * check PATH VIEW N             compares every number of a view; not timed
 * checkt PATH ROWS COLUMNS      the same of a matrix of 8-byte numbers that is a transpose
 *
 * Prints the seconds from before the first open until after the last close. */
#include "../programs/common.h"
#include "points.h"

#include "kernels.c"

static uint32_t *numbers;

static uint64_t number(const char *text) { return strtoull(text, NULL, 10); }

static int opened(const char *path, int flags) {
    int fd = open(path, flags, 0644);
    if (fd < 0) give_up(path);
    return fd;
}

static void put(const char *path, int fd, const void *data, size_t len, uint64_t at) {
    for (size_t done = 0; done < len;) {
        ssize_t n = pwrite(fd, (const char *)data + done, len - done, (off_t)(at + done));
        if (n <= 0) give_up(path);
        done += (size_t)n;
    }
}

static void closed(const char *path, int fd) {
    if (close(fd)) give_up(path);
}

/* The numbers from `first` on. They repeat, so that making them takes no time: a batch of them. */
static const uint32_t *structures(uint64_t first) { return numbers + first % (3 * BATCH); }

static void do_read(const char *path, uint64_t size) {
    unsigned char *block = aligned_alloc(PAGE, BLOCK);
    int fd = opened(path, O_RDONLY);
    uint64_t at = 0;
    while (at < size) {
        ssize_t n = read(fd, block, size - at < BLOCK ? size - at : BLOCK);
        if (n <= 0) give_up(path);
        at += (uint64_t)n;
    }
    closed(path, fd);
}

static void do_write(const char *path, uint64_t size) {
    int fd = opened(path, O_WRONLY | O_CREAT);
    for (uint64_t at = 0; at < size; at += BLOCK)
        put(path, fd, structures(at / 4), size - at < BLOCK ? size - at : BLOCK, at);
    closed(path, fd);
}

#ifdef __AVX512F__
#define SPLIT soa_from_aos_wide
#define THIRD every3_wide
#else
#define SPLIT soa_from_aos_scalar
#define THIRD every3_scalar
#endif

static void write_b(const char *path, uint64_t n, uint32_t *scratch) {
    int fd = opened(path, O_WRONLY | O_CREAT);
    for (uint64_t i = 0; i < n; i += BATCH) {
        size_t count = n - i < BATCH ? n - i : BATCH;
        THIRD(scratch, structures(3 * i) + 1, count);
        put(path, fd, scratch, 4 * count, 4 * i);
    }
    closed(path, fd);
}

static void write_soa(const char *path, uint64_t n, uint32_t *scratch) {
    int fd = opened(path, O_WRONLY | O_CREAT);
    for (uint64_t i = 0; i < n; i += BATCH) {
        size_t count = n - i < BATCH ? n - i : BATCH;
        SPLIT(scratch, structures(3 * i), count);
        for (size_t k = 0; k < 3; k++) put(path, fd, scratch + k * count, 4 * count, 4 * (k * n + i));
    }
    closed(path, fd);
}

static void pick(const char *path, uint64_t n, uint32_t *scratch) {
    uint32_t *block = aligned_alloc(PAGE, 12 * BATCH);
    int fd = opened(path, O_RDONLY);
    for (uint64_t i = 0; i < n; i += BATCH) {
        size_t count = n - i < BATCH ? n - i : BATCH, have = 0;
        while (have < 12 * count) {
            ssize_t got = read(fd, (char *)block + have, 12 * count - have);
            if (got <= 0) give_up(path);
            have += (size_t)got;
        }
        THIRD(scratch, block + 1, count);
    }
    closed(path, fd);
}

static void check(const char *path, uint64_t size, uint64_t (*wanted)(uint64_t)) {
    uint32_t *block = aligned_alloc(PAGE, BLOCK);
    int fd = opened(path, O_RDONLY);
    uint64_t at = 0;
    while (at < size) {
        ssize_t n = read(fd, block, BLOCK);
        if (n <= 0) break;
        for (ssize_t i = 0; i < n / 4; i++)
            if (block[i] != (uint32_t)wanted(at / 4 + (uint64_t)i)) wrong_data(path, at + 4 * (uint64_t)i);
        at += (uint64_t)n;
    }
    if (at != size) {
        fprintf(stderr, "%s: has %llu of %llu bytes\n", path, (unsigned long long)at, (unsigned long long)size);
        exit(3);
    }
    closed(path, fd);
}

static const char *view;
static uint64_t points, rows, columns;

/* The data repeat after a batch. */
static uint64_t of_view(uint64_t w) { return number_at(number_of(view, w, points) % (3 * BATCH)); }

static uint64_t of_transpose(uint64_t w) {
    uint64_t place = w / 2, i = place % rows, j = place / rows;
    return number_at(((i * columns + j) * 2 + w % 2) % (3 * BATCH));
}

int main(int argc, char **argv) {
    if (argc < 4) {
        fprintf(stderr, "usage: views MODE ...\n");
        return 2;
    }
    /* From wherever a piece begins, as many as a piece may have follow. */
    size_t held = 3 * BATCH + BLOCK / 4 + 3 * BATCH;
    numbers = aligned_alloc(PAGE, held * 4 / PAGE * PAGE + PAGE);
    if (!numbers) give_up("memory");
    for (uint64_t e = 0; e < held; e++) numbers[e] = number_at(e % (3 * BATCH));
    uint32_t *scratch = aligned_alloc(PAGE, 12 * BATCH);
    const char *mode = argv[1];
    double begin = seconds_now();
    if (!strcmp(mode, "read")) do_read(argv[2], number(argv[3]));
    else if (!strcmp(mode, "write")) do_write(argv[2], number(argv[3]));
    else if (!strcmp(mode, "hand") && argc == 6) {
        uint64_t n = number(argv[2]);
        do_write(argv[3], 12 * n);
        write_soa(argv[4], n, scratch);
        write_b(argv[5], n, scratch);
    } else if (!strcmp(mode, "hand2") && argc == 5) {
        do_write(argv[3], 12 * number(argv[2]));
        write_b(argv[4], number(argv[2]), scratch);
    } else if (!strcmp(mode, "pick")) pick(argv[2], number(argv[3]), scratch);
    else if (!strcmp(mode, "check") && argc == 5) {
        view = argv[3];
        points = number(argv[4]);
        check(argv[2], (!strcmp(view, "b") || !strcmp(view, "every5") ? 4 : 12) * points, of_view);
    } else if (!strcmp(mode, "checkt") && argc == 5) {
        rows = number(argv[3]);
        columns = number(argv[4]);
        check(argv[2], 8 * rows * columns, of_transpose);
    } else {
        fprintf(stderr, "views: no mode %s\n", mode);
        return 2;
    }
    printf("{\"seconds\": %.9f}\n", seconds_now() - begin);
    return 0;
}
