#define _GNU_SOURCE
/* A program that knows nothing of services, started as some ranks of a job in which others serve.
   Arguments: what to do, and the directory to do it in, which may be a service's.
   Prints one line for what it found; each must be as if the program were alone. */
#include <errno.h>
#include <fcntl.h>
#include <mpi.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

static char path[4096];

static char *in(const char *directory, const char *name, int rank) {
    snprintf(path, sizeof path, "%s/%s.%d", directory, name, rank);
    return path;
}

static void world(void) {
    int rank, size, flag, result, *tag_ub, total, length, left, right, got = -1;
    char name[MPI_MAX_OBJECT_NAME];
    MPI_Comm_rank(MPI_COMM_WORLD, &rank);
    MPI_Comm_size(MPI_COMM_WORLD, &size);
    MPI_Allreduce(&rank, &total, 1, MPI_INT, MPI_SUM, MPI_COMM_WORLD);
    MPI_Comm_get_name(MPI_COMM_WORLD, name, &length);
    MPI_Comm_get_attr(MPI_COMM_WORLD, MPI_TAG_UB, &tag_ub, &flag);
    MPI_Comm copy;
    MPI_Comm_dup(MPI_COMM_WORLD, &copy);
    MPI_Comm_compare(copy, MPI_COMM_WORLD, &result);
    left = (rank + size - 1) % size, right = (rank + 1) % size;
    MPI_Sendrecv(&rank, 1, MPI_INT, right, 7, &got, 1, MPI_INT, left, 7, MPI_COMM_WORLD, MPI_STATUS_IGNORE);
    MPI_Group group, all;
    int zero = 0, translated = -1;
    MPI_Comm_group(MPI_COMM_WORLD, &all);
    MPI_Comm_group(copy, &group);
    MPI_Group_translate_ranks(group, 1, &zero, all, &translated);
    MPI_Group_free(&group);
    MPI_Group_free(&all);
    MPI_Comm_free(&copy);
    MPI_Request request;
    int root = rank == 0 ? 41 : 0;
    MPI_Ibcast(&root, 1, MPI_INT, 0, MPI_COMM_WORLD, &request);
    MPI_Wait(&request, MPI_STATUS_IGNORE);
    int *memory, members;
    MPI_Win window;
    MPI_Win_allocate(sizeof *memory, sizeof *memory, MPI_INFO_NULL, MPI_COMM_WORLD, &memory, &window);
    MPI_Win_get_group(window, &group);
    MPI_Group_size(group, &members);
    MPI_Group_free(&group);
    MPI_Win_free(&window);
    MPI_Comm_set_errhandler(MPI_COMM_WORLD, MPI_ERRORS_RETURN);
    int bad = MPI_Send(&rank, 1, MPI_INT, size, 0, MPI_COMM_WORLD);
    MPI_Barrier(MPI_COMM_WORLD);
    printf("rank %d of %d: sum %d, %s, tag_ub %d, %s, left %d, first %d, bcast %d, window %d, beyond %s\n", rank, size,
           total, name, flag && *tag_ub >= 32767, result == MPI_CONGRUENT ? "congruent" : "different", got, translated,
           root, members, bad == MPI_SUCCESS ? "sent" : "refused");
    fflush(stdout);
}

/* Each rank writes a file, all read that of their neighbour; then one file is written by all. */
static void files(const char *directory) {
    enum { INTS = 300000 };
    int rank, size, *ints = malloc(INTS * sizeof *ints), *back = malloc(INTS * sizeof *back);
    MPI_Comm_rank(MPI_COMM_WORLD, &rank);
    MPI_Comm_size(MPI_COMM_WORLD, &size);
    for (int i = 0; i < INTS; i++) ints[i] = rank * INTS + i;
    FILE *file = fopen(in(directory, "own", rank), "w");
    int wrote = file && fwrite(ints, sizeof *ints, INTS, file) == INTS && fclose(file) == 0;
    MPI_Barrier(MPI_COMM_WORLD);
    int other = (rank + 1) % size, wrong = 0;
    file = fopen(in(directory, "own", other), "r");
    int got = file ? (int)fread(back, sizeof *back, INTS, file) : -1;
    for (int i = 0; i < got; i++) wrong += back[i] != other * INTS + i;
    if (file) fclose(file);
    MPI_File all;
    snprintf(path, sizeof path, "%s/all", directory);
    int code = MPI_File_open(MPI_COMM_WORLD, path, MPI_MODE_CREATE | MPI_MODE_RDWR, MPI_INFO_NULL, &all);
    if (code == MPI_SUCCESS) {
        code = MPI_File_write_at_all(all, (MPI_Offset)rank * INTS * 4, ints, INTS, MPI_INT, MPI_STATUS_IGNORE);
        MPI_File_close(&all);
    }
    printf("rank %d: wrote %d, read %d, wrong %d, together %d\n", rank, wrote, got, wrong, code);
    fflush(stdout);
    free(ints);
    free(back);
}

static void say(const char *when, int rank, const char *what, long result) {
    printf("rank %d %s: %s %s\n", rank, when, what, result >= 0 ? "done" : strerrorname_np(errno));
    fflush(stdout);
}

int main(int argc, char **argv) {
    const char *what = argc > 1 ? argv[1] : "world", *directory = argc > 2 ? argv[2] : ".";
    int rank = 0, level;
    if (!strcmp(what, "early")) say("before MPI_Init", 0, "open", open(in(directory, "own", 0), O_RDONLY));
    if (!strcmp(what, "threads")) {
        MPI_Init_thread(&argc, &argv, MPI_THREAD_FUNNELED, &level);
        int asked;
        MPI_Query_thread(&asked);
        printf("funneled %d, the same %d\n", level == MPI_THREAD_FUNNELED, level == asked);
    } else {
        MPI_Init(&argc, &argv);
    }
    MPI_Comm_rank(MPI_COMM_WORLD, &rank);
    world();
    int descriptor = -1;
    if (strcmp(what, "world")) files(directory);
    if (!strcmp(what, "late")) {
        descriptor = open(in(directory, "late", rank), O_CREAT | O_RDWR, 0666);
        say("before MPI_Finalize", rank, "write", write(descriptor, "written before the end\n", 23));
    }
    if (!strcmp(what, "child")) {
        snprintf(path, sizeof path, "cp %s/own.%d %s/copy.%d", directory, rank, directory, rank);
        printf("rank %d: child %d\n", rank, system(path));
        fflush(stdout);
    }
    MPI_Finalize();
    if (!strcmp(what, "late")) {
        say("after MPI_Finalize", rank, "write", write(descriptor, "x", 1) < 0 ? -1 : fsync(descriptor));
        say("after MPI_Finalize", rank, "open", open(in(directory, "own", rank), O_RDONLY));
        say("after MPI_Finalize", rank, "close", close(descriptor));
    }
    return 0;
}
