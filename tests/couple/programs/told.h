/* What the programs of this directory share: an error ends the job, and what a rank has got is written to a file of its own,
 * which is compared between a run by files and one without. */
#ifndef TOLD_H
#define TOLD_H

#include <mpi.h>
#include <pnetcdf.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

static int rank_, size_;
static FILE *told_;

/* A call that must not fail. */
#define DO(call)                                                                                                       \
    do {                                                                                                               \
        int code_ = (call);                                                                                            \
        if (code_ != NC_NOERR) {                                                                                       \
            fprintf(stderr, "rank %d, line %d: %s: %s\n", rank_, __LINE__, #call, ncmpi_strerror(code_));              \
            MPI_Abort(MPI_COMM_WORLD, 1);                                                                              \
        }                                                                                                              \
    } while (0)

/* A call whose code is told, whatever it is. */
#define TELL(call) fprintf(told_, "%s: %d\n", #call, call)

static void begin(int *argc, char ***argv, const char *directory_of_told)
{
    char name[4096];
    MPI_Init(argc, argv);
    MPI_Comm_rank(MPI_COMM_WORLD, &rank_);
    MPI_Comm_size(MPI_COMM_WORLD, &size_);
    snprintf(name, sizeof name, "%s/told.%d", directory_of_told, rank_);
    told_ = fopen(name, "wb");
    if (!told_) {
        perror(name);
        MPI_Abort(MPI_COMM_WORLD, 1);
    }
}

static void end(void)
{
    fclose(told_);
    MPI_Finalize();
}

/* Bytes, with a name before them. */
static void told(const char *name, const void *bytes, size_t length)
{
    fprintf(told_, "%s %zu\n", name, length);
    fwrite(bytes, 1, length, told_);
    fputc('\n', told_);
}

/* The part of `length` that the rank `at` of `of` has. */
static MPI_Offset part(MPI_Offset length, int at, int of, MPI_Offset *count)
{
    MPI_Offset start = length * at / of;
    *count = length * (at + 1) / of - start;
    return start;
}

#endif
