/* many write|read FILE DIRECTORY: a file of 900 variables of several types, posted all at once. */
#include "told.h"

enum { VARIABLES = 900, N = 64 };

int main(int argc, char **argv)
{
    static int ids[VARIABLES], requests[VARIABLES], statuses[VARIABLES];
    static double values[VARIABLES][N];
    int file, dimension, writes, v, i;
    const nc_type types[] = {NC_DOUBLE, NC_FLOAT, NC_INT};
    if (argc != 4) return 2;
    begin(&argc, &argv, argv[3]);
    writes = !strcmp(argv[1], "write");
    MPI_Offset count, start = part(N, rank_, size_, &count);
    if (writes) {
        DO(ncmpi_create(MPI_COMM_WORLD, argv[2], NC_CLOBBER, MPI_INFO_NULL, &file));
        DO(ncmpi_def_dim(file, "n", N, &dimension));
    } else {
        DO(ncmpi_open(MPI_COMM_WORLD, argv[2], NC_NOWRITE, MPI_INFO_NULL, &file));
    }
    for (v = 0; v < VARIABLES; v++) {
        char name[32];
        snprintf(name, sizeof name, "variable%d", v);
        if (writes) DO(ncmpi_def_var(file, name, types[v % 3], 1, &dimension, &ids[v]));
        else DO(ncmpi_inq_varid(file, name, &ids[v]));
    }
    if (writes) DO(ncmpi_enddef(file));
    for (v = 0; v < VARIABLES; v++) {
        for (i = 0; i < count; i++) values[v][i] = writes ? v * 100 + start + i : -1;
        if (writes) DO(ncmpi_iput_vara_double(file, ids[v], &start, &count, values[v], &requests[v]));
        else DO(ncmpi_iget_vara_double(file, ids[v], &start, &count, values[v], &requests[v]));
    }
    DO(ncmpi_wait_all(file, VARIABLES, requests, statuses));
    DO(ncmpi_close(file));
    told("values", values, writes ? 0 : sizeof values);
    end();
    return 0;
}
