/* The protocol of `sluice sieve bench --beside`: a program that does the same
 * strided accesses. It is started with the file's path; for each line
 *     read|write DATA HOLE DISPLACEMENT TOTAL CALL FIRST SECONDS wall|processor
 * it answers the bytes of data that it carried, the seconds that it took and
 * those in which it was running, or `error` and what went wrong. */
#ifndef BENCH_BESIDE_H
#define BENCH_BESIDE_H

#include "common.h"

struct request {
    int writes;
    uint64_t data, hole, displacement;
    /* Bytes of data in the file, of one call, and the call to begin with. */
    uint64_t total, call, first;
    double seconds;
    clockid_t clock;
};

/* The next request; 0 at the end of the input. */
static inline int next_request(struct request *r) {
    char line[512], access[16], clock[16];
    if (!fgets(line, sizeof line, stdin)) return 0;
    unsigned long long n[6];
    if (sscanf(line, "%15s %llu %llu %llu %llu %llu %llu %lf %15s", access, &n[0], &n[1], &n[2], &n[3],
               &n[4], &n[5], &r->seconds, clock) != 9) {
        fprintf(stderr, "not a request: %s", line);
        exit(2);
    }
    r->writes = strcmp(access, "write") == 0;
    r->data = n[0], r->hole = n[1], r->displacement = n[2];
    r->total = n[3], r->call = n[4], r->first = n[5];
    r->clock = strcmp(clock, "processor") == 0 ? CLOCK_THREAD_CPUTIME_ID : CLOCK_MONOTONIC;
    return 1;
}

static inline double clock_seconds(clockid_t clock) {
    struct timespec t;
    clock_gettime(clock, &t);
    return (double)t.tv_sec + (double)t.tv_nsec * 1e-9;
}

/* Makes calls until the time is over. `access` carries `len` bytes of data
 * from `start` of the view's data and says what went wrong, or NULL. */
static inline void answer(const struct request *r, const char *(*access)(const struct request *, uint64_t start, uint64_t len)) {
    uint64_t calls = (r->total + r->call - 1) / r->call, done = 0;
    uint64_t at = calls ? r->first % calls : 0;
    double began = clock_seconds(r->clock), ran = clock_seconds(CLOCK_THREAD_CPUTIME_ID), spent;
    const char *wrong = calls ? NULL : "no data";
    do {
        uint64_t start = at * r->call;
        uint64_t len = r->total - start < r->call ? r->total - start : r->call;
        if (!wrong) wrong = access(r, start, len);
        if (wrong) {
            printf("error %s\n", wrong);
            fflush(stdout);
            return;
        }
        done += len;
        at = at + 1 == calls ? 0 : at + 1;
        spent = clock_seconds(r->clock) - began;
    } while (spent < r->seconds);
    ran = clock_seconds(CLOCK_THREAD_CPUTIME_ID) - ran;
    printf("%llu %.9f %.9f\n", (unsigned long long)done, spent, ran);
    fflush(stdout);
}

#endif
