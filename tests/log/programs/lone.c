/* Plain programs, without MPI, whose machine loses power: each writer tells the consistency points that it has passed.
 *
 * usage: lone NOTES DIRECTORY EPOCHS EACH PLAN:POINT ...
 *
 * For each PLAN:POINT, numbered from 0, there is a process. PLAN is one of epochs.h; the process's file is
 * DIRECTORY/PLAN.NUMBER, of which all blocks are its own. POINT is
 *
 * sync, datasync  fsync or fdatasync of the file, which stays open
 * close           close, and open again for the next epoch
 * dsync           none: it is open with O_DSYNC, and an epoch is one write (plans whole and growing)
 * replace         another file gets all that the epoch leaves, fsync, is renamed over the file; fsync of the directory
 *
 * or PLAN:POINT is `names`: in DIRECTORY/names.NUMBER a file is made for each epoch, renamed, linked, and unlinked three
 * epochs later, and so are directories; modes are changed; fsync of the directory ends the epoch (see powercut/names.py).
 *
 * NOTES is a serial line or a file. `NUMBER enter E` is told before what makes the point is called, and is on its way out
 * of the machine before the program goes on; `NUMBER pass E` when it has returned. */
#define _GNU_SOURCE
#include <errno.h>
#include <fcntl.h>
#include <stdio.h>
#include <sys/stat.h>
#include <sys/wait.h>
#include <termios.h>
#include <unistd.h>

#include "epochs.h"

static pid_t children[256];
static int notes;
static unsigned number, epochs, each;

static void die(const char *what) {
    fprintf(stderr, "lone: writer %u: %s: %s\n", number, what, strerror(errno));
    _exit(4);
}

#define DO(call) done((call) >= 0, #call)
static void done(int is_done, const char *call) {
    if (!is_done) die(call);
}

static void note(const char *what, unsigned epoch) {
    char line[48];
    int length = sprintf(line, "%u %s %u\n", number, what, epoch);
    if (write(notes, line, (size_t)length) != length) die("the points cannot be told");
    tcdrain(notes);
}

static void write_all(int fd, const void *bytes, size_t length, off_t offset) {
    if (pwrite(fd, bytes, length, offset) != (ssize_t)length) die("pwrite");
}

/* Another file with all that there is after the epoch takes the file's name. */
static void replace(const char *directory, const char *path, const struct plan *plan, unsigned epoch) {
    char fresh[4200];
    snprintf(fresh, sizeof fresh, "%s.new", path);
    int fd = open(fresh, O_CREAT | O_TRUNC | O_WRONLY, 0644);
    DO(fd);
    uint64_t blocks = blocks_after(plan, epoch, 1, each);
    unsigned char *bytes = malloc(blocks * BLOCK + 1);
    for (uint64_t block = 0; block < blocks; block++)
        fill(bytes + block * BLOCK, written_in(plan, epoch, block, 1, each), number, block * BLOCK, BLOCK);
    write_all(fd, bytes, blocks * BLOCK, 0);
    free(bytes);
    note("enter", epoch);
    DO(fsync(fd));
    DO(close(fd));
    DO(rename(fresh, path));
    int above = open(directory, O_RDONLY | O_DIRECTORY);
    DO(above);
    DO(fsync(above));
    DO(close(above));
}

static void name_files(const char *directory) {
    char home[4096];
    snprintf(home, sizeof home, "%s/names.%u", directory, number);
    DO(mkdir(home, 0755));
    int above = open(home, O_RDONLY | O_DIRECTORY);
    DO(above);
    for (unsigned epoch = 1; epoch <= epochs; epoch++) {
        char fresh[32], final[32], other[32], hollow[32];
        sprintf(fresh, "new.%u", epoch), sprintf(final, "file.%u", epoch), sprintf(other, "link.%u", epoch), sprintf(hollow, "dir.%u", epoch);
        note("enter", epoch);
        DO(mkdirat(above, hollow, 0755));
        int fd = openat(above, fresh, O_CREAT | O_EXCL | O_WRONLY, 0644);
        DO(fd);
        char text[32];
        write_all(fd, text, (size_t)sprintf(text, "%u\n", epoch), 0);
        DO(close(fd));
        DO(renameat(above, fresh, above, final));
        DO(linkat(above, final, above, other, 0));
        if (epoch > 3) {
            sprintf(final, "file.%u", epoch - 3), sprintf(other, "link.%u", epoch - 3), sprintf(hollow, "dir.%u", epoch - 3);
            DO(unlinkat(above, final, 0));
            DO(unlinkat(above, other, 0));
            DO(unlinkat(above, hollow, AT_REMOVEDIR));
        }
        sprintf(final, "file.%u", epoch), sprintf(hollow, "dir.%u", epoch);
        DO(fchmodat(above, hollow, 0700, 0));
        DO(fchmodat(above, final, 0744, 0));
        DO(fsync(above));
        note("pass", epoch);
    }
}

static void write_epochs(const char *directory, const struct plan *plan, const char *point) {
    char path[4096];
    snprintf(path, sizeof path, "%s/%s.%u", directory, plan->name, number);
    int replaces = !strcmp(point, "replace"), at_once = !strcmp(point, "dsync");
    unsigned char *bytes = malloc((size_t)each * (epochs + 1) * BLOCK);
    uint64_t *places = malloc((size_t)each * (epochs + 1) * sizeof *places);
    int fd = -1;
    for (unsigned epoch = 1; epoch <= epochs; epoch++) {
        if (replaces) {
            replace(directory, path, plan, epoch);
            note("pass", epoch);
            continue;
        }
        if (fd < 0) DO(fd = open(path, O_CREAT | O_WRONLY | (at_once ? O_DSYNC : 0), 0644));
        unsigned count = gather(plan, epoch, 1, number, each, places, bytes);
        if (at_once) note("enter", epoch);
        if (at_once) write_all(fd, bytes, (size_t)count * BLOCK, (off_t)places[0]);
        for (unsigned i = 0; !at_once && i < count; i++) write_all(fd, bytes + (size_t)i * BLOCK, BLOCK, (off_t)places[i]);
        if (!at_once) note("enter", epoch);
        if (!strcmp(point, "sync")) DO(fsync(fd));
        if (!strcmp(point, "datasync")) DO(fdatasync(fd));
        if (!strcmp(point, "close")) {
            DO(close(fd));
            fd = -1;
        }
        note("pass", epoch);
    }
    if (fd >= 0) DO(close(fd));
}

int main(int argc, char **argv) {
    if (argc < 6 || argc > 256) return fprintf(stderr, "usage: lone NOTES DIRECTORY EPOCHS EACH PLAN:POINT ...\n"), 2;
    notes = open(argv[1], O_CREAT | O_WRONLY | O_APPEND | O_NOCTTY, 0644);
    DO(notes);
    epochs = (unsigned)atoi(argv[3]), each = (unsigned)atoi(argv[4]);
    for (int i = 5; i < argc; i++, number++) {
        pid_t child = fork();
        DO(child);
        children[number] = child;
        if (child > 0) continue;
        char *point = strchr(argv[i], ':');
        if (point) *point++ = 0;
        const struct plan *plan = plan_of(argv[i]);
        if (!strcmp(argv[i], "names")) name_files(argv[2]);
        else if (plan && point) write_epochs(argv[2], plan, point);
        else return fprintf(stderr, "lone: what is %s?\n", argv[i]), 2;
        return 0;
    }
    /* Not for any child: the log's agent may be one of this process. */
    int worst = 0, status;
    for (unsigned i = 0; i < number; i++)
        if (waitpid(children[i], &status, 0) < 0 || status != 0) worst = 4;
    return worst;
}
