/* faults write|partial|die|abort|late|read FILE DIRECTORY: two variables, and what goes wrong with them. The reader tells codes and
 * sentences, and ends by itself. */
#include "told.h"

#include <unistd.h>

enum { N = 1000 };

static void write_file(const char *verb, const char *name)
{
    int file, dimension, a, b;
    MPI_Offset count, start = part(N, rank_, size_, &count);
    static double values[N];
    DO(ncmpi_create(MPI_COMM_WORLD, name, NC_CLOBBER, MPI_INFO_NULL, &file));
    DO(ncmpi_def_dim(file, "n", N, &dimension));
    DO(ncmpi_def_var(file, "a", NC_DOUBLE, 1, &dimension, &a));
    DO(ncmpi_def_var(file, "b", NC_DOUBLE, 1, &dimension, &b));
    if (!strcmp(verb, "abort")) {
        DO(ncmpi_abort(file));
        return;
    }
    DO(ncmpi_enddef(file));
    DO(ncmpi_put_vara_double_all(file, a, &start, &count, values));
    if (!strcmp(verb, "die")) _exit(3);
    if (strcmp(verb, "partial")) DO(ncmpi_put_vara_double_all(file, b, &start, &count, values));
    /* In data mode this is as closing. */
    if (!strcmp(verb, "late")) DO(ncmpi_abort(file));
    else DO(ncmpi_close(file));
}

static void tell(const char *what, int code) { fprintf(told_, "%s: %d: %s\n", what, code, ncmpi_strerror(code)); }

static void read_file(const char *name)
{
    int file, b, code = ncmpi_open(MPI_COMM_WORLD, name, NC_NOWRITE, MPI_INFO_NULL, &file);
    MPI_Offset start = 0, count = N, too_many = N + 1;
    static double values[N + 1];
    tell("open", code);
    if (code != NC_NOERR) return;
    tell("a", ncmpi_get_vara_double_all(file, 0, &start, &count, values));
    tell("more than there is", ncmpi_get_vara_double_all(file, 0, &start, &too_many, values));
    tell("no such variable", ncmpi_inq_varid(file, "c", &b));
    tell("b", ncmpi_get_vara_double_all(file, 1, &start, &count, values));
    tell("close", ncmpi_close(file));
}

int main(int argc, char **argv)
{
    if (argc != 4) return 2;
    begin(&argc, &argv, argv[3]);
    if (strcmp(argv[1], "read")) write_file(argv[1], argv[2]);
    else read_file(argv[2]);
    end();
    return 0;
}
