/* calls KIND ROUNDS CALLS FILE: the cost of calls on things that are not routed.
 *
 * KIND is read (one byte of /dev/zero), open (open and close of FILE), stat (of
 * FILE) or fread (one byte at a time from FILE, which is re-read as it ends).
 * Prints the nanoseconds per call of each round as a JSON array. Run once as it is
 * and once under redirection, the difference is what redirection adds. */
#include "common.h"
#include <sys/stat.h>

static int zero;
static FILE *stream;
static const char *file;

static void call_read(long calls) {
    char byte;
    for (long i = 0; i < calls; i++)
        if (read(zero, &byte, 1) != 1) give_up("/dev/zero");
}

static void call_open(long calls) {
    for (long i = 0; i < calls; i++) {
        int fd = open(file, O_RDONLY);
        if (fd < 0 || close(fd)) give_up(file);
    }
}

static void call_stat(long calls) {
    struct stat st;
    for (long i = 0; i < calls; i++)
        if (stat(file, &st)) give_up(file);
}

static void call_fread(long calls) {
    char byte;
    for (long i = 0; i < calls; i++)
        if (fread(&byte, 1, 1, stream) != 1) rewind(stream);
}

int main(int argc, char **argv) {
    if (argc != 5) {
        fprintf(stderr, "usage: calls read|open|stat|fread ROUNDS CALLS FILE\n");
        return 2;
    }
    const char *kind = argv[1];
    int rounds = atoi(argv[2]);
    long calls = atol(argv[3]);
    file = argv[4];
    zero = open("/dev/zero", O_RDONLY);
    stream = fopen(file, "r");
    if (zero < 0 || !stream) give_up(file);
    void (*call)(long) = !strcmp(kind, "read")   ? call_read
                         : !strcmp(kind, "open") ? call_open
                         : !strcmp(kind, "stat") ? call_stat
                                                 : call_fread;
    call(calls / 4 + 1); /* warm-up */
    for (int round = 0; round < rounds; round++) {
        double begin = seconds_now();
        call(calls);
        printf("%s%.3f", round ? ", " : "[", (seconds_now() - begin) / (double)calls * 1e9);
    }
    puts("]");
    return 0;
}
