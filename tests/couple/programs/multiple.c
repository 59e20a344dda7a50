/* multiple write|read FILE DIRECTORY: two cycles, of which the readers read the first one by several transfers. With DTF only. */
#include "told.h"

#include <dtf.h>

enum { N = 100 };

int main(int argc, char **argv)
{
    if (argc != 4) return 2;
    begin(&argc, &argv, argv[3]);
    int writes = !strcmp(argv[1], "write"), file, dimension, ids[2];
    if (dtf_init(getenv("S3D_DTF"), writes ? "wrt" : "rdr")) MPI_Abort(MPI_COMM_WORLD, 1);
    dtf_time_start();
    MPI_Offset count, start = part(N, rank_, size_, &count);
    double values[2][N];
    if (writes) {
        DO(ncmpi_create(MPI_COMM_WORLD, argv[2], NC_CLOBBER, MPI_INFO_NULL, &file));
        DO(ncmpi_def_dim(file, "n", N, &dimension));
        DO(ncmpi_def_var(file, "a", NC_DOUBLE, 1, &dimension, &ids[0]));
        DO(ncmpi_def_var(file, "b", NC_DOUBLE, 1, &dimension, &ids[1]));
        DO(ncmpi_enddef(file));
    } else {
        DO(ncmpi_open(MPI_COMM_WORLD, argv[2], NC_NOWRITE, MPI_INFO_NULL, &file));
        DO(ncmpi_inq_varid(file, "a", &ids[0]));
        DO(ncmpi_inq_varid(file, "b", &ids[1]));
    }
    for (int cycle = 0; cycle < 2; cycle++) {
        for (int v = 0; v < 2; v++) {
            for (int i = 0; i < count; i++) values[v][i] = writes ? cycle * 1000 + v * 500 + start + i : -1;
            if (writes) {
                /* Not copied: it stays until the transfer. */
                DO(ncmpi_put_vara_double_all(file, ids[v], &start, &count, values[v]));
            } else {
                DO(ncmpi_get_vara_double_all(file, ids[v], &start, &count, values[v]));
                for (int i = 0; i < count; i++)
                    if (values[v][i] != cycle * 1000 + v * 500 + start + i) {
                        fprintf(stderr, "rank %d, cycle %d, variable %d: %g at %d\n", rank_, cycle, v, values[v][i], i);
                        MPI_Abort(MPI_COMM_WORLD, 1);
                    }
                if (cycle == 0) DO(dtf_transfer(argv[2], DTF_UNDEFINED));
            }
        }
        if (cycle == 1) DO(dtf_transfer_all_files());
        else if (writes) dtf_transfer_multiple(argv[2], file);
        else dtf_complete_multiple(NULL, file);
        memset(values, 0xff, sizeof values);
    }
    DO(ncmpi_close(file));
    dtf_time_end();
    if (dtf_finalize()) MPI_Abort(MPI_COMM_WORLD, 1);
    end();
    return 0;
}
