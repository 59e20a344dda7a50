/* calls KIND CALLS FILE: the cost of calls on things that are not routed.
 *
 * KIND is read (one byte of /dev/zero), open (open and close of FILE, which are two
 * calls), stat (of FILE) or fread (one byte at a time from FILE, which is re-read as
 * it ends). For each line on standard input it makes CALLS calls and answers with the
 * nanoseconds per call. Two of these, one as it is and one under redirection, asked in
 * turn, tell what redirection adds. */
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
    for (long i = 0; i < calls; i += 2) {
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
    if (argc != 4) {
        fprintf(stderr, "usage: calls read|open|stat|fread CALLS FILE\n");
        return 2;
    }
    const char *kind = argv[1];
    long calls = atol(argv[2]);
    file = argv[3];
    zero = open("/dev/zero", O_RDONLY);
    stream = fopen(file, "r");
    if (zero < 0 || !stream) give_up(file);
    void (*call)(long) = !strcmp(kind, "read")   ? call_read
                         : !strcmp(kind, "open") ? call_open
                         : !strcmp(kind, "stat") ? call_stat
                                                 : call_fread;
    for (int request = getchar(); request != EOF; request = getchar()) {
        if (request != '\n') continue;
        call(calls / 10 + 1); /* the caches were somebody else's meanwhile */
        double begin = seconds_now();
        call(calls);
        printf("%.3f\n", (seconds_now() - begin) / (double)calls * 1e9);
        fflush(stdout);
    }
    return 0;
}
