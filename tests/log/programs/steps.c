/* A program without MPI that is killed: it notes the consistency points that it has passed, as `epochs.c` does.
 *
 * usage: steps POINTS DIRECTORY PLAN WAY EPOCHS EACH
 *
 * PLAN   whole some growing mixed: see epochs.h; the file is PLAN.0
 * WAY    sync       pwrite and fsync
 *        datasync   pwrite and fdatasync, through two descriptors in turn
 *        close      opened for each epoch
 *        rewrite    emptied and written as a whole for each epoch
 *        stdio      fopen, fwrite of what is next to each other, fclose
 *        mapped     written through a shared mapping, and msync
 *        child      each epoch is written by a child that inherits the descriptor, and ends; other children inherit it
 *                   and do nothing
 *        exec       after each epoch the program becomes itself again, with the descriptor open
 *
 * The lines `begin E`, `enter E` and `pass E` go to POINTS/points.0, with O_DSYNC. */
#define _GNU_SOURCE
#include <errno.h>
#include <fcntl.h>
#include <sys/mman.h>
#include <sys/wait.h>
#include <unistd.h>

#include "epochs.h"

static int points;
static char path[4096];
static const struct plan *plan;
static unsigned each;

static void die(const char *what) {
    fprintf(stderr, "steps: %s: %s\n", what, strerror(errno));
    exit(4);
}

static void note(const char *what, unsigned epoch) {
    char line[32];
    int length = sprintf(line, "%s %u\n", what, epoch);
    if (write(points, line, (size_t)length) != length) die("the points cannot be noted");
}

static int opened(int flags) {
    int fd = open(path, O_CREAT | flags, 0644);
    if (fd < 0) die(path);
    return fd;
}

/* The blocks of an epoch, or all as they are after it. */
static void write_blocks(int fd, int other, unsigned epoch, int all) {
    unsigned char bytes[BLOCK];
    int turn = 0;
    for (uint64_t block = 0; block < blocks_after(plan, epoch, 1, each); block++) {
        unsigned last = all ? written_in(plan, epoch, block, 1, each) : epoch;
        if (!all && !is_written(plan, epoch, block, 1, each)) continue;
        fill(bytes, last, 0, block * BLOCK, BLOCK);
        if (pwrite(turn++ % 2 ? other : fd, bytes, BLOCK, (off_t)(block * BLOCK)) != BLOCK) die("pwrite");
    }
}

static void write_stream(unsigned epoch) {
    FILE *file = fdopen(opened(O_RDWR), "r+");
    unsigned char bytes[BLOCK];
    uint64_t next = 0;
    for (uint64_t block = 0; file && block < blocks_after(plan, epoch, 1, each); block++) {
        if (!is_written(plan, epoch, block, 1, each)) continue;
        fill(bytes, epoch, 0, block * BLOCK, BLOCK);
        if (block != next && fseek(file, (long)(block * BLOCK), SEEK_SET) != 0) die("fseek");
        if (fwrite(bytes, 1, BLOCK, file) != BLOCK) die("fwrite");
        next = block + 1;
    }
    note("enter", epoch);
    if (!file || fclose(file) != 0) die("fclose");
}

static void write_mapped(int fd, unsigned epoch) {
    size_t size = blocks_after(plan, epoch, 1, each) * BLOCK;
    if (ftruncate(fd, (off_t)size) != 0) die("ftruncate");
    unsigned char *bytes = mmap(NULL, size, PROT_READ | PROT_WRITE, MAP_SHARED, fd, 0);
    if (bytes == MAP_FAILED) die("mmap");
    for (uint64_t block = 0; block * BLOCK < size; block++)
        if (is_written(plan, epoch, block, 1, each)) fill(bytes + block * BLOCK, epoch, 0, block * BLOCK, BLOCK);
    note("enter", epoch);
    if (msync(bytes, size, MS_SYNC) != 0 || fsync(fd) != 0) die("msync");
    munmap(bytes, size);
}

static void in_a_child(int fd, unsigned epoch, int writes) {
    pid_t child = fork();
    if (child == 0) {
        if (writes) write_blocks(fd, fd, epoch, 0);
        if (writes) note("enter", epoch);
        _exit(0);
    }
    int status = 0;
    if (child < 0 || waitpid(child, &status, 0) != child || status != 0) die("a child");
}

int main(int argc, char **argv) {
    if (argc < 7 || !(plan = plan_of(argv[3]))) return fprintf(stderr, "usage: steps POINTS DIRECTORY PLAN WAY EPOCHS EACH\n"), 2;
    const char *way = argv[4];
    unsigned epochs = (unsigned)atoi(argv[5]), first = 1;
    each = (unsigned)atoi(argv[6]);
    snprintf(path, sizeof path, "%s/points.0", argv[1]);
    points = open(path, O_CREAT | O_WRONLY | O_APPEND | O_DSYNC | O_CLOEXEC, 0644);
    if (points < 0) die(path);
    snprintf(path, sizeof path, "%s/%s.0", argv[2], plan->name);
    int fd = -1, other = -1;
    if (argc == 9) {
        first = (unsigned)atoi(argv[7]), fd = atoi(argv[8]);
        note("pass", first - 1);
    }
    for (unsigned epoch = first; epoch <= epochs; epoch++) {
        note("begin", epoch);
        if (strcmp(way, "stdio") == 0) {
            write_stream(epoch);
        } else if (strcmp(way, "close") == 0 || strcmp(way, "rewrite") == 0) {
            int all = way[0] == 'r';
            fd = opened(O_WRONLY | (all ? O_TRUNC : 0));
            write_blocks(fd, fd, epoch, all);
            note("enter", epoch);
            if (close(fd) != 0) die("close");
        } else if (strcmp(way, "mapped") == 0) {
            if (fd < 0) fd = opened(O_RDWR);
            write_mapped(fd, epoch);
        } else if (strcmp(way, "child") == 0) {
            if (fd < 0) fd = opened(O_WRONLY);
            in_a_child(fd, epoch, 0);
            in_a_child(fd, epoch, 1);
        } else if (strcmp(way, "exec") == 0) {
            char next[16], number[16];
            if (fd < 0) fd = opened(O_WRONLY);
            write_blocks(fd, fd, epoch, 0);
            sprintf(next, "%u", epoch + 1), sprintf(number, "%d", fd);
            note("enter", epoch);
            execl("/proc/self/exe", argv[0], argv[1], argv[2], argv[3], argv[4], argv[5], argv[6], next, number, (char *)NULL);
            die("exec");
        } else {
            if (fd < 0) fd = opened(O_WRONLY), other = opened(O_WRONLY);
            write_blocks(fd, way[0] == 'd' ? other : fd, epoch, 0);
            note("enter", epoch);
            if ((way[0] == 'd' ? fdatasync : fsync)(fd) != 0) die("fsync");
        }
        note("pass", epoch);
    }
    return 0;
}
