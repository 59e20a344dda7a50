/* What programs do that write results: the area `log` runs it on a local disk, on a far place, and through a log.
 *
 *   logwriter pieces FILE SIZE PIECE SYNC     pieces one after the other, fsync after every SYNC bytes
 *   logwriter strided FILE PROCESSES COUNT    each process writes every PROCESSES-th page of a file, fsync after each
 *   logwriter cycles DIR CYCLES EVERY SIZE MS so many cycles that compute for MS, a file of SIZE after every EVERY-th
 *   logwriter files DIR COUNT PIECE           files of one piece each: open, write, close
 *   logwriter extend FILE COUNT PIECE STRIDE  pieces at multiples of STRIDE of one file
 *
 * Everything is durable when it ends: `seconds` are those in open, write, fsync and close, `peak_kib` is the most memory
 * that it had. */
#include "common.h"

#include <sys/wait.h>

static unsigned char *block;

static uint64_t number(const char *text) {
    return strtoull(text, NULL, 10);
}

static int create(const char *path) {
    int fd = open(path, O_WRONLY | O_CREAT, 0644);
    if (fd < 0) give_up(path);
    return fd;
}

/* So many bytes of the pattern at `offset`, both whole pages unless there is less than one. */
static void put(int fd, const char *path, uint64_t len, uint64_t offset) {
    while (len) {
        size_t now = len < BLOCK ? (size_t)len : BLOCK;
        pattern_stamp(block, now, offset);
        for (size_t done = 0; done < now;) {
            ssize_t n = pwrite(fd, block + done, now - done, (off_t)(offset + done));
            if (n <= 0) give_up(path);
            done += (size_t)n;
        }
        offset += now;
        len -= now;
    }
}

static void finish(int fd, const char *path) {
    if (fsync(fd) || close(fd)) give_up(path);
}

static double pieces(const char *path, uint64_t size, uint64_t piece, uint64_t sync) {
    double began = seconds_now();
    int fd = create(path);
    for (uint64_t at = 0; at < size; at += piece) {
        put(fd, path, piece, at);
        if ((at + piece) % sync == 0 && fsync(fd)) give_up(path);
    }
    finish(fd, path);
    return seconds_now() - began;
}

static double strided(const char *path, unsigned processes, uint64_t count) {
    int ready[2], go[2];
    char byte = 0;
    if (pipe(ready) || pipe(go)) give_up("pipe");
    for (unsigned rank = 0; rank < processes; rank++) {
        pid_t pid = fork();
        if (pid < 0) give_up("fork");
        if (pid > 0) continue;
        close(go[1]);
        int fd = create(path);
        if (write(ready[1], &byte, 1) != 1 || read(go[0], &byte, 1) < 0) give_up("pipe");
        for (uint64_t i = 0; i < count; i++) {
            put(fd, path, PAGE, (i * processes + rank) * PAGE);
            if (fsync(fd)) give_up(path);
        }
        finish(fd, path);
        _exit(0);
    }
    for (unsigned rank = 0; rank < processes; rank++)
        if (read(ready[0], &byte, 1) != 1) give_up("pipe");
    double began = seconds_now();
    close(go[1]);
    for (unsigned rank = 0; rank < processes; rank++) {
        int status;
        if (wait(&status) < 0) give_up("wait");
        if (status) {
            fprintf(stderr, "%s: a writer failed\n", path);
            exit(1);
        }
    }
    return seconds_now() - began;
}

/* Work that needs a processor for so long, however many share it. */
static void compute(double seconds) {
    struct timespec t;
    double end = -1, now;
    volatile double sum = 0;
    do {
        for (int i = 0; i < 20000; i++) sum += (double)i * 1e-9;
        clock_gettime(CLOCK_THREAD_CPUTIME_ID, &t);
        now = (double)t.tv_sec + (double)t.tv_nsec * 1e-9;
        if (end < 0) end = now + seconds;
    } while (now < end);
}

static double cycles(const char *dir, unsigned count, unsigned every, uint64_t size, double ms) {
    double waited = 0;
    char path[4096];
    for (unsigned cycle = 1; cycle <= count; cycle++) {
        compute(ms / 1e3);
        if (cycle % every || !size) continue;
        snprintf(path, sizeof path, "%s/out.%u", dir, cycle / every);
        waited += pieces(path, size, BLOCK, size);
    }
    return waited;
}

static double files(const char *dir, unsigned count, uint64_t piece) {
    char path[4096];
    double began = seconds_now();
    for (unsigned i = 0; i < count; i++) {
        snprintf(path, sizeof path, "%s/file.%u", dir, i);
        int fd = create(path);
        put(fd, path, piece, 0);
        finish(fd, path);
    }
    return seconds_now() - began;
}

static double extend(const char *path, unsigned count, uint64_t piece, uint64_t stride) {
    double began = seconds_now();
    int fd = create(path);
    for (unsigned i = 0; i < count; i++) put(fd, path, piece, i * stride);
    finish(fd, path);
    return seconds_now() - began;
}

/* Not from getrusage(2), which counts what the process had before exec. */
static unsigned long peak_kib(void) {
    char line[256];
    unsigned long kib = 0;
    FILE *status = fopen("/proc/self/status", "r");
    if (!status) give_up("/proc/self/status");
    while (fgets(line, sizeof line, status))
        if (!strncmp(line, "VmHWM:", 6)) kib = strtoul(line + 6, NULL, 10);
    fclose(status);
    return kib;
}

int main(int argc, char **argv) {
    const char *mode = argc > 3 ? argv[1] : "";
    uint64_t n[4] = {0};
    for (int i = 3; i < argc && i < 7; i++) n[i - 3] = number(argv[i]);
    double waited, began = seconds_now();
    block = new_block();
    if (!strcmp(mode, "pieces") && argc == 6) waited = pieces(argv[2], n[0], n[1], n[2]);
    else if (!strcmp(mode, "strided") && argc == 5) waited = strided(argv[2], (unsigned)n[0], n[1]);
    else if (!strcmp(mode, "cycles") && argc == 7) waited = cycles(argv[2], (unsigned)n[0], (unsigned)n[1], n[2], (double)n[3]);
    else if (!strcmp(mode, "files") && argc == 5) waited = files(argv[2], (unsigned)n[0], n[1]);
    else if (!strcmp(mode, "extend") && argc == 6) waited = extend(argv[2], (unsigned)n[0], n[1], n[2]);
    else {
        fprintf(stderr, "logwriter: see the head of its source for what it takes\n");
        return 2;
    }
    printf("{\"seconds\": %.9f, \"total\": %.9f, \"peak_kib\": %lu}\n", waited, seconds_now() - began, peak_kib());
    return 0;
}
