/* Two programs that hand each other a file by PnetCDF, cycle after cycle, and the same bytes between the same ranks by
 * MPI alone.
 *
 *   handover write PREFIX CYCLES ROWS OUT IN       ranks own blocks of rows
 *   handover read PREFIX CYCLES ROWS OUT IN WHEN   ranks want blocks of columns; WHEN: `now`, or `later`, after the writer closed
 *   handover pass CYCLES ROWS                      both in one job: the first half of the ranks writes
 *
 * OUT and IN are FIFOs between the two programs' first ranks: a cycle begins when both are ready, and has ended when the
 * file is closed on both sides and the reader has said so. The writer prints the seconds of all cycles. Numbers are
 * compared outside of that time. */
#include <mpi.h>
#include <pnetcdf.h>

#include "common.h"

#define COLUMNS 4096

static int rank, ranks;
static long long rows;

static void check(int status, const char *what) {
    if (status == NC_NOERR) return;
    fprintf(stderr, "%s: %s\n", what, ncmpi_strerror(status));
    MPI_Abort(MPI_COMM_WORLD, 1);
}

static double number(long long row, long long column, int cycle) { return (double)(row * COLUMNS + column) + 0.5 * cycle; }

/* Rows from `first` on, of a writer; the last of `count` writers has what is left. */
static long long begin(long long whole, int which, int count) { return whole * which / count; }

static void fill(double *block, long long first, long long count, int cycle) {
    for (long long i = 0; i < count; i++)
        for (long long j = 0; j < COLUMNS; j++) block[i * COLUMNS + j] = number(first + i, j, cycle);
}

static void compare(const double *block, long long first, long long width, int cycle) {
    for (long long i = 0; i < rows; i++)
        for (long long j = 0; j < width; j++)
            if (block[i * width + j] != number(i, first + j, cycle)) wrong_data("handover", (uint64_t)(i * COLUMNS + first + j));
}

static double *room(long long count) {
    double *memory = aligned_alloc(PAGE, ((size_t)count * sizeof(double) + PAGE - 1) / PAGE * PAGE);
    if (!memory) give_up("memory");
    memset(memory, 0, (size_t)count * sizeof(double));
    return memory;
}

static int out = -1, in = -1;

static void tell(void) {
    if (rank == 0 && write(out, "x", 1) != 1) give_up("telling the other program");
}

static void hear(void) {
    char byte;
    if (rank == 0 && read(in, &byte, 1) != 1) give_up("the other program has ended");
}

static void write_file(const char *name, const double *block, long long first, long long count) {
    int file, dimensions[2], variable;
    MPI_Offset start[2] = {first, 0}, extent[2] = {count, COLUMNS};
    check(ncmpi_create(MPI_COMM_WORLD, name, NC_CLOBBER | NC_64BIT_DATA, MPI_INFO_NULL, &file), "create");
    check(ncmpi_def_dim(file, "row", rows, &dimensions[0]), "def_dim");
    check(ncmpi_def_dim(file, "column", COLUMNS, &dimensions[1]), "def_dim");
    check(ncmpi_def_var(file, "field", NC_DOUBLE, 2, dimensions, &variable), "def_var");
    check(ncmpi_enddef(file), "enddef");
    check(ncmpi_put_vara_double_all(file, variable, start, extent, block), "put");
    check(ncmpi_close(file), "close");
}

static void read_file(const char *name, double *block, long long first, long long width) {
    int file, variable;
    MPI_Offset start[2] = {0, first}, extent[2] = {rows, width};
    check(ncmpi_open(MPI_COMM_WORLD, name, NC_NOWRITE, MPI_INFO_NULL, &file), "open");
    check(ncmpi_inq_varid(file, "field", &variable), "inq_varid");
    check(ncmpi_get_vara_double_all(file, variable, start, extent, block), "get");
    check(ncmpi_close(file), "close");
}

static void writer(const char *prefix, int cycles) {
    long long first = begin(rows, rank, ranks), count = begin(rows, rank + 1, ranks) - first;
    double *block = room(count * COLUMNS), seconds = 0;
    char name[4096];
    for (int cycle = 0; cycle < cycles; cycle++) {
        fill(block, first, count, cycle);
        snprintf(name, sizeof name, "%s.%d.nc", prefix, cycle);
        MPI_Barrier(MPI_COMM_WORLD);
        hear();
        double began = seconds_now();
        tell();
        MPI_Barrier(MPI_COMM_WORLD);
        write_file(name, block, first, count);
        MPI_Barrier(MPI_COMM_WORLD);
        tell();
        hear();
        seconds += seconds_now() - began;
    }
    if (rank == 0) printf("{\"seconds\": %.9f}\n", seconds);
}

static void reader(const char *prefix, int cycles, int later) {
    long long first = begin(COLUMNS, rank, ranks), width = begin(COLUMNS, rank + 1, ranks) - first;
    double *block = room(rows * width);
    char name[4096];
    for (int cycle = 0; cycle < cycles; cycle++) {
        snprintf(name, sizeof name, "%s.%d.nc", prefix, cycle);
        tell();
        hear();
        if (later) hear();
        MPI_Barrier(MPI_COMM_WORLD);
        read_file(name, block, first, width);
        MPI_Barrier(MPI_COMM_WORLD);
        if (!later) hear();
        tell();
        compare(block, first, width, cycle);
        if (later && rank == 0) unlink(name);
    }
}

/* Each writer's columns of each reader, as they lie in the writer's memory and in the reader's, without a copy between. */
static void pass(int cycles) {
    int half = ranks / 2, is_writer = rank < half, which = rank % half;
    long long first = is_writer ? begin(rows, which, half) : begin(COLUMNS, which, half);
    long long count = (is_writer ? begin(rows, which + 1, half) : begin(COLUMNS, which + 1, half)) - first;
    double *block = room(is_writer ? count * COLUMNS : rows * count), seconds = 0;
    MPI_Request *requests = malloc((size_t)half * sizeof *requests);
    MPI_Datatype *types = malloc((size_t)half * sizeof *types);
    for (int other = 0; other < half; other++) {
        if (is_writer) {
            long long column = begin(COLUMNS, other, half), width = begin(COLUMNS, other + 1, half) - column;
            int sizes[2] = {(int)count, COLUMNS}, part[2] = {(int)count, (int)width}, at[2] = {0, (int)column};
            MPI_Type_create_subarray(2, sizes, part, at, MPI_ORDER_C, MPI_DOUBLE, &types[other]);
        } else {
            long long row = begin(rows, other, half), height = begin(rows, other + 1, half) - row;
            int sizes[2] = {(int)rows, (int)count}, part[2] = {(int)height, (int)count}, at[2] = {(int)row, 0};
            MPI_Type_create_subarray(2, sizes, part, at, MPI_ORDER_C, MPI_DOUBLE, &types[other]);
        }
        MPI_Type_commit(&types[other]);
    }
    for (int cycle = 0; cycle < cycles; cycle++) {
        if (is_writer) fill(block, first, count, cycle);
        MPI_Barrier(MPI_COMM_WORLD);
        double began = seconds_now();
        for (int other = 0; other < half; other++) {
            if (is_writer) MPI_Isend(block, 1, types[other], half + other, 0, MPI_COMM_WORLD, &requests[other]);
            else MPI_Irecv(block, 1, types[other], other, 0, MPI_COMM_WORLD, &requests[other]);
        }
        MPI_Waitall(half, requests, MPI_STATUSES_IGNORE);
        MPI_Barrier(MPI_COMM_WORLD);
        seconds += seconds_now() - began;
        if (!is_writer) compare(block, first, count, cycle);
    }
    if (rank == 0) printf("{\"seconds\": %.9f}\n", seconds);
}

static void meet(const char *to, const char *from, int reads) {
    if (rank != 0) return;
    /* In this order on the one side and the other on the other: opening a FIFO waits for the other end. */
    if (!reads) out = open(to, O_WRONLY);
    in = open(from, O_RDONLY);
    if (reads) out = open(to, O_WRONLY);
    if (out < 0 || in < 0) give_up("fifo");
}

int main(int argc, char **argv) {
    MPI_Init(&argc, &argv);
    MPI_Comm_rank(MPI_COMM_WORLD, &rank);
    MPI_Comm_size(MPI_COMM_WORLD, &ranks);
    const char *mode = argc > 1 ? argv[1] : "";
    int is_reader = !strcmp(mode, "read");
    if (!strcmp(mode, "pass") && argc == 4 && ranks % 2 == 0) {
        rows = atoll(argv[3]);
        pass(atoi(argv[2]));
    } else if ((!strcmp(mode, "write") && argc == 7) || (is_reader && argc == 8)) {
        rows = atoll(argv[4]);
        meet(argv[5], argv[6], is_reader);
        if (is_reader) reader(argv[2], atoi(argv[3]), !strcmp(argv[7], "later"));
        else writer(argv[2], atoi(argv[3]));
    } else {
        fprintf(stderr, "usage: handover write|read|pass …: see its source\n");
        MPI_Abort(MPI_COMM_WORLD, 2);
    }
    MPI_Finalize();
    return 0;
}
