/* A program that is killed, or whose machine loses power: each rank notes the consistency points that it has passed.
 *
 * usage: epochs POINTS DIRECTORY PLAN CALLS POINT EPOCHS EACH
 *
 * PLAN   whole some growing mixed: see epochs.h
 * CALLS  independent (each block by a call), strided (a view with holes, independent), collective (the same, all ranks),
 *        nonblocking; or posix: no MPI-IO, a file of each rank (PLAN.RANK), of which all blocks are its own
 * POINT  sync (MPI_File_sync or fsync), datasync (posix only), or close (and open again for the next epoch)
 * EACH   blocks of a rank in an epoch, at most
 *
 * For each epoch a rank appends to POINTS/points.RANK, with O_DSYNC, `begin E` before it writes the first byte, `enter E`
 * before it calls what makes the point, and `pass E` when it has returned: a line is there before the program goes on.
 * `points` says what a file that was found afterwards has to do with them. */
#define _GNU_SOURCE
#include <errno.h>
#include <fcntl.h>
#include <mpi.h>
#include <stdio.h>
#include <unistd.h>

#include "epochs.h"

static int rank, size, points;

static void die(const char *what, int code) {
    char text[MPI_MAX_ERROR_STRING] = "";
    int length;
    if (code != MPI_SUCCESS) MPI_Error_string(code, text, &length);
    fprintf(stderr, "epochs: rank %d: %s: %s%s\n", rank, what, text, code == MPI_SUCCESS ? strerror(errno) : "");
    MPI_Abort(MPI_COMM_WORLD, 4);
}

#define DO(call) done(call, #call)
static void done(int code, const char *call) {
    if (code != MPI_SUCCESS) die(call, code);
}

static void note(const char *what, unsigned epoch) {
    char line[32];
    int length = sprintf(line, "%s %u\n", what, epoch);
    if (write(points, line, (size_t)length) != length) die("the points cannot be noted", MPI_SUCCESS);
}

static void write_epoch(MPI_File file, const char *calls, unsigned count, const uint64_t *places, unsigned char *bytes) {
    if (strcmp(calls, "independent") == 0) {
        for (unsigned i = 0; i < count; i++)
            DO(MPI_File_write_at(file, (MPI_Offset)places[i], bytes + (size_t)i * BLOCK, BLOCK, MPI_BYTE, MPI_STATUS_IGNORE));
    } else if (strcmp(calls, "nonblocking") == 0) {
        MPI_Request *requests = malloc(count * sizeof *requests + 1);
        for (unsigned i = 0; i < count; i++)
            DO(MPI_File_iwrite_at(file, (MPI_Offset)places[i], bytes + (size_t)i * BLOCK, BLOCK, MPI_BYTE, &requests[i]));
        /* One by one: gcc takes MPICH's MPI_STATUSES_IGNORE for an array that is too short. */
        for (unsigned i = 0; i < count; i++) DO(MPI_Wait(&requests[i], MPI_STATUS_IGNORE));
        free(requests);
    } else {
        MPI_Aint *displacements = malloc(count * sizeof *displacements + 1);
        for (unsigned i = 0; i < count; i++) displacements[i] = (MPI_Aint)places[i];
        MPI_Datatype type = MPI_BYTE;
        if (count > 0) {
            MPI_Type_create_hindexed_block((int)count, BLOCK, displacements, MPI_BYTE, &type);
            MPI_Type_commit(&type);
        }
        DO(MPI_File_set_view(file, 0, MPI_BYTE, type, "native", MPI_INFO_NULL));
        if (strcmp(calls, "strided") == 0)
            DO(MPI_File_write_at(file, 0, bytes, (int)(count * BLOCK), MPI_BYTE, MPI_STATUS_IGNORE));
        else
            DO(MPI_File_write_at_all(file, 0, bytes, (int)(count * BLOCK), MPI_BYTE, MPI_STATUS_IGNORE));
        DO(MPI_File_set_view(file, 0, MPI_BYTE, MPI_BYTE, "native", MPI_INFO_NULL));
        if (count > 0) MPI_Type_free(&type);
        free(displacements);
    }
}

int main(int argc, char **argv) {
    MPI_Init(&argc, &argv);
    MPI_Comm_rank(MPI_COMM_WORLD, &rank);
    MPI_Comm_size(MPI_COMM_WORLD, &size);
    const struct plan *plan = argc == 8 ? plan_of(argv[3]) : NULL;
    if (!plan) {
        fprintf(stderr, "usage: epochs POINTS DIRECTORY PLAN CALLS POINT EPOCHS EACH\n");
        MPI_Abort(MPI_COMM_WORLD, 2);
    }
    const char *calls = argv[4], *point = argv[5];
    unsigned epochs = (unsigned)atoi(argv[6]), each = (unsigned)atoi(argv[7]);
    int posix = strcmp(calls, "posix") == 0, closes = strcmp(point, "close") == 0;
    char path[4096];
    snprintf(path, sizeof path, "%s/points.%d", argv[1], rank);
    points = open(path, O_CREAT | O_WRONLY | O_APPEND | O_DSYNC, 0644);
    if (points < 0) die(path, MPI_SUCCESS);

    size_t most = (size_t)each * (epochs + 1);
    unsigned char *bytes = malloc(most * BLOCK);
    uint64_t *places = malloc(most * sizeof *places);
    unsigned ranks = posix ? 1 : (unsigned)size;
    if (posix) snprintf(path, sizeof path, "%s/%s.%d", argv[2], plan->name, rank);
    else snprintf(path, sizeof path, "%s/%s", argv[2], plan->name);
    MPI_File file = MPI_FILE_NULL;
    int fd = -1;
    for (unsigned epoch = 1; epoch <= epochs; epoch++) {
        if (posix && fd < 0 && (fd = open(path, O_CREAT | O_WRONLY, 0644)) < 0) die(path, MPI_SUCCESS);
        if (!posix && file == MPI_FILE_NULL) DO(MPI_File_open(MPI_COMM_WORLD, path, MPI_MODE_CREATE | MPI_MODE_RDWR, MPI_INFO_NULL, &file));
        unsigned count = gather(plan, epoch, ranks, (unsigned)rank, each, places, bytes);
        note("begin", epoch);
        for (unsigned i = 0; posix && i < count; i++)
            if (pwrite(fd, bytes + (size_t)i * BLOCK, BLOCK, (off_t)places[i]) != BLOCK) die("pwrite", MPI_SUCCESS);
        if (!posix) write_epoch(file, calls, count, places, bytes);
        note("enter", epoch);
        if (closes) {
            if (posix && close(fd) != 0) die("close", MPI_SUCCESS);
            if (!posix) DO(MPI_File_close(&file));
            fd = -1, file = MPI_FILE_NULL;
        } else if (posix) {
            if ((strcmp(point, "datasync") ? fsync : fdatasync)(fd) != 0) die("fsync", MPI_SUCCESS);
        } else {
            DO(MPI_File_sync(file));
        }
        note("pass", epoch);
        /* Nobody writes bytes of the next epoch while others make this one's point. */
        if (!posix) MPI_Barrier(MPI_COMM_WORLD);
    }
    if (fd >= 0 && close(fd) != 0) die("close", MPI_SUCCESS);
    if (file != MPI_FILE_NULL) DO(MPI_File_close(&file));
    MPI_Finalize();
    return 0;
}
