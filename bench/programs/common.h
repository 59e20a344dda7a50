/* What the helper programs share: the clock, the way to give up, and the data
 * that every transfer moves.
 *
 * The data is made so that checking it costs next to nothing while a transfer
 * is being timed: every page of 4 KiB starts with eight bytes that depend on
 * its place in the file, the rest repeats. A page that is lost, swapped or
 * stale is noticed; `transfer check` compares every byte, outside the timing. */
#ifndef BENCH_COMMON_H
#define BENCH_COMMON_H

#define _GNU_SOURCE
#include <errno.h>
#include <fcntl.h>
#include <stdint.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <time.h>
#include <unistd.h>

#define PAGE 4096u
#define BLOCK (1u << 20)

static inline double seconds_now(void) {
    struct timespec t;
    clock_gettime(CLOCK_MONOTONIC, &t);
    return (double)t.tv_sec + (double)t.tv_nsec * 1e-9;
}

static inline void give_up(const char *what) {
    fprintf(stderr, "%s: %s\n", what, strerror(errno));
    exit(1);
}

static inline void wrong_data(const char *where, uint64_t offset) {
    fprintf(stderr, "%s: wrong data at offset %llu\n", where, (unsigned long long)offset);
    exit(3);
}

static inline uint64_t page_stamp(uint64_t page) {
    return (page + 1) * 0x9E3779B97F4A7C15ull;
}

/* Fills a block with the part of the pattern that does not depend on its place. */
static inline void pattern_fill(unsigned char *block) {
    uint64_t state = 88172645463325252ull;
    for (size_t i = 0; i < BLOCK; i++) {
        if (i % PAGE == 0) state = 88172645463325252ull;
        state ^= state << 13;
        state ^= state >> 7;
        state ^= state << 17;
        block[i] = (unsigned char)(state >> 24);
    }
}

/* Stamps the pages of a filled block for its place in the file (a multiple of PAGE). */
static inline void pattern_stamp(unsigned char *block, size_t len, uint64_t offset) {
    for (size_t i = 0; i + 8 <= len; i += PAGE) {
        uint64_t stamp = page_stamp((offset + i) / PAGE);
        memcpy(block + i, &stamp, 8);
    }
}

/* Checks the stamps of all pages that begin inside data[0..len), which lies at `offset`. */
static inline void pattern_check(const char *where, const unsigned char *data, size_t len,
                                 uint64_t offset) {
    size_t i = (size_t)((PAGE - offset % PAGE) % PAGE);
    for (; i + 8 <= len; i += PAGE) {
        uint64_t stamp;
        memcpy(&stamp, data + i, 8);
        if (stamp != page_stamp((offset + i) / PAGE)) wrong_data(where, offset + i);
    }
}

static inline unsigned char *new_block(void) {
    unsigned char *block = aligned_alloc(PAGE, BLOCK);
    if (!block) give_up("memory");
    pattern_fill(block);
    return block;
}

#endif
