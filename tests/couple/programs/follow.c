/* follow write|read sync|wait FILE DIRECTORY: records, one at a time; who reads has the file open while it is written. */
#include "told.h"

enum { RECORDS = 6, X = 50 };

int main(int argc, char **argv)
{
    if (argc != 5) return 2;
    begin(&argc, &argv, argv[4]);
    int writes = !strcmp(argv[1], "write"), waits = !strcmp(argv[2], "wait"), file, id, dims[2], request, status;
    MPI_Offset start[2] = {0, 0}, count[2] = {1, 0}, records;
    start[1] = part(X, rank_, size_, &count[1]);
    double row[X];
    if (writes) {
        DO(ncmpi_create(MPI_COMM_WORLD, argv[3], NC_CLOBBER, MPI_INFO_NULL, &file));
        DO(ncmpi_def_dim(file, "time", NC_UNLIMITED, &dims[0]));
        DO(ncmpi_def_dim(file, "x", X, &dims[1]));
        DO(ncmpi_def_var(file, "series", NC_DOUBLE, 2, dims, &id));
        DO(ncmpi_enddef(file));
    } else {
        DO(ncmpi_open(MPI_COMM_WORLD, argv[3], NC_NOWRITE, MPI_INFO_NULL, &file));
        DO(ncmpi_inq_varid(file, "series", &id));
        DO(ncmpi_inq_dimid(file, "time", &dims[0]));
    }
    for (start[0] = 0; start[0] < RECORDS; start[0]++) {
        for (int i = 0; i < count[1]; i++) row[i] = writes ? start[0] * 1000 + start[1] + i : -1;
        if (!writes && !waits) {
            DO(ncmpi_inq_dimlen(file, dims[0], &records));
            if (records != start[0] + 1) {
                fprintf(stderr, "rank %d: %lld records instead of %lld\n", rank_, records, start[0] + 1);
                MPI_Abort(MPI_COMM_WORLD, 1);
            }
        }
        if (waits) {
            if (writes) DO(ncmpi_iput_vara_double(file, id, start, count, row, &request));
            else DO(ncmpi_iget_vara_double(file, id, start, count, row, &request));
            DO(ncmpi_wait_all(file, 1, &request, &status));
            DO(status);
        } else {
            if (writes) DO(ncmpi_put_vara_double_all(file, id, start, count, row));
            else DO(ncmpi_get_vara_double_all(file, id, start, count, row));
            DO(ncmpi_sync(file));
        }
        for (int i = 0; i < count[1]; i++)
            if (row[i] != start[0] * 1000 + start[1] + i) {
                fprintf(stderr, "rank %d, record %lld: %g at %d\n", rank_, start[0], row[i], i);
                MPI_Abort(MPI_COMM_WORLD, 1);
            }
    }
    DO(ncmpi_close(file));
    end();
    return 0;
}
