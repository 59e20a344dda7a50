/* Threads: one file in common, many files, opening and closing all the time, fork among threads. */
#include "common.h"

#include <pthread.h>

enum { THREADS = 8, BLOCKS = 100, BLOCK = 4000 };

static int common_fd;

static void in_threads(void *(*work)(void *)) {
    pthread_t threads[THREADS];
    for (long i = 0; i < THREADS; i++)
        CHECK(pthread_create(&threads[i], NULL, work, (void *)i) == 0);
    for (int i = 0; i < THREADS; i++) {
        void *result;
        CHECK(pthread_join(threads[i], &result) == 0);
        CHECK(result == NULL);
    }
}

static void *positions_worker(void *argument) {
    long me = (long)argument;
    unsigned char block[BLOCK], back[BLOCK];
    for (long i = 0; i < BLOCKS; i++) {
        long at = (i * THREADS + me) * BLOCK;
        fill(block, at, BLOCK);
        CHECK(pwrite(common_fd, block, BLOCK, at) == BLOCK);
        CHECK(pread(common_fd, back, BLOCK, at) == BLOCK);
        CHECK(memcmp(block, back, BLOCK) == 0);
    }
    return NULL;
}

static void one_file(void) {
    common_fd = MUST(open(in("common"), O_CREAT | O_RDWR, 0644));
    in_threads(positions_worker);
    MUST(close(common_fd));
    puts("written in parallel");
}

static void *own_file_worker(void *argument) {
    char name[20];
    snprintf(name, sizeof name, "file%ld", (long)argument);
    FILE *f = fopen(in(name), "w");
    CHECK(f != NULL);
    for (int i = 0; i < 5000; i++)
        fprintf(f, "%s line %d\n", name, i);
    CHECK(fclose(f) == 0);
    f = fopen(in(name), "r");
    CHECK(f != NULL);
    int lines = 0;
    for (int c; (c = fgetc(f)) != EOF;)
        lines += c == '\n';
    fclose(f);
    return lines == 5000 ? NULL : (void *)1;
}

static void *shared_offset_worker(void *argument) {
    char line[40];
    int n = snprintf(line, sizeof line, "thread %ld wrote this\n", (long)argument);
    for (int i = 0; i < 200; i++)
        CHECK(write(common_fd, line, n) == n);
    return NULL;
}

static void shared_offset(void) {
    /* write(2) updates the shared offset atomically: no line may be lost or torn. */
    common_fd = MUST(open(in("lines"), O_CREAT | O_WRONLY, 0644));
    in_threads(shared_offset_worker);
    MUST(close(common_fd));
    char command[3 * PATH_MAX];
    snprintf(command, sizeof command, "sort -o '%s' '%s'; uniq -c '%s'", in("lines"), in("lines"), in("lines"));
    fflush(stdout);
    CHECK(system(command) == 0);
}

static void *churn_worker(void *argument) {
    char name[30], b[10];
    for (int i = 0; i < 200; i++) {
        snprintf(name, sizeof name, "churn%ld-%d", (long)argument, i % 5);
        int fd = open(in(name), O_CREAT | O_RDWR, 0644);
        CHECK(fd >= 0);
        int twin = dup(fd);
        CHECK(write(fd, name, 6) == 6);
        close(fd);
        CHECK(pread(twin, b, 6, 0) == 6 && memcmp(b, name, 6) == 0);
        close(twin);
        int plain = open("/dev/zero", O_RDONLY);
        CHECK(read(plain, b, 4) == 4 && b[0] == 0);
        close(plain);
        struct stat s;
        CHECK(stat(in(name), &s) == 0 && s.st_size == 6);
        if (i % 7 == 0)
            unlink(in(name));
    }
    return NULL;
}

static volatile int stop;

static void *reading_worker(void *argument) {
    char b[1000];
    (void)argument;
    while (!stop)
        CHECK(pread(common_fd, b, sizeof b, 5000) == sizeof b);
    return NULL;
}

static void fork_among_threads(void) {
    pthread_t thread;
    common_fd = MUST(open(in("data.bin"), O_RDONLY));
    CHECK(pthread_create(&thread, NULL, reading_worker, NULL) == 0);
    for (int i = 0; i < 10; i++) {
        pid_t child = MUST(fork());
        if (child == 0) {
            char b[10];
            int fd = open(in("text.txt"), O_RDONLY);
            _exit(fd >= 0 && read(fd, b, 10) == 10 && pread(common_fd, b, 10, 77) == 10 ? 0 : 1);
        }
        reap(child, "child");
    }
    stop = 1;
    CHECK(pthread_join(thread, NULL) == 0);
}

static void *cancelled_worker(void *argument) {
    char c;
    (void)argument;
    for (;;) {
        int fd = open(in("text.txt"), O_RDONLY);
        CHECK(pread(fd, &c, 1, 0) == 1);
        close(fd);
    }
    return NULL;
}

static void cancellation(void) {
    /* read, write and their kin are cancellation points; a cancelled thread must leave no lock behind. */
    for (int i = 0; i < 5; i++) {
        pthread_t thread;
        CHECK(pthread_create(&thread, NULL, cancelled_worker, NULL) == 0);
        usleep(20000);
        CHECK(pthread_cancel(thread) == 0);
        void *result;
        CHECK(pthread_join(thread, &result) == 0);
        printf("%d\n", result == PTHREAD_CANCELED);
        show("no-newline");
    }
}

static void own_files(void) { in_threads(own_file_worker); puts("each its own"); }
static void churn(void) { in_threads(churn_worker); puts("opened and closed"); }

int main(int argc, char **argv) {
    setvbuf(stdout, NULL, _IOLBF, 0);
    const struct part parts[] = {
        {"one-file", one_file}, {"own-files", own_files}, {"shared-offset", shared_offset}, {"churn", churn},
        {"fork-among-threads", fork_among_threads}, {"cancellation", cancellation}, {NULL, NULL}};
    return run_part(parts, argc, argv);
}
