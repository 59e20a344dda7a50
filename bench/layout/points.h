/* The data of the bench: structures of three numbers, all of which differ. */
#ifndef BENCH_POINTS_H
#define BENCH_POINTS_H

#include <stddef.h>
#include <stdint.h>
#include <string.h>

/* Structures after which the data repeat, so that making them takes no time: they stay in the second cache. A
 * multiple of 16. */
#define BATCH (64u << 10)

/* The number `e` of the dataset, counted in the order of the structures. */
static inline uint32_t number_at(uint64_t e) { return (uint32_t)e * 2654435761u; }

/* Which number of the dataset stands at place `w` of a view of `n` structures. */
static inline uint64_t number_of(const char *view, uint64_t w, uint64_t n) {
    if (!strcmp(view, "soa")) return w % n * 3 + w / n;
    if (!strcmp(view, "b")) return w * 3 + 1;
    if (!strcmp(view, "every5")) return w * 5;
    return w;
}

#endif
