/* loop model|assimilation DIRECTORY CYCLES: as in SCALE-LETKF. In each cycle the model writes a field by rows, the assimilation
 * reads it by columns, doubles it and writes it back, and the model reads that by rows and adds its number. */
#include "told.h"

enum { Y = 60, X = 40 };

static MPI_Offset start_[2], count_[2];

static void put(const char *name, const double *field, int cycle)
{
    int file, dims[2], id;
    DO(ncmpi_create(MPI_COMM_WORLD, name, NC_CLOBBER, MPI_INFO_NULL, &file));
    DO(ncmpi_def_dim(file, "y", Y, &dims[0]));
    DO(ncmpi_def_dim(file, "x", X, &dims[1]));
    DO(ncmpi_def_var(file, "field", NC_DOUBLE, 2, dims, &id));
    DO(ncmpi_put_att_int(file, NC_GLOBAL, "cycle", NC_INT, 1, &cycle));
    DO(ncmpi_enddef(file));
    DO(ncmpi_put_vara_double_all(file, id, start_, count_, field));
    DO(ncmpi_close(file));
}

static void get(const char *name, double *field, int expected)
{
    int file, id, cycle;
    DO(ncmpi_open(MPI_COMM_WORLD, name, NC_NOWRITE, MPI_INFO_NULL, &file));
    DO(ncmpi_get_att_int(file, NC_GLOBAL, "cycle", &cycle));
    if (cycle != expected) {
        fprintf(stderr, "%s is of cycle %d and not %d\n", name, cycle, expected);
        MPI_Abort(MPI_COMM_WORLD, 1);
    }
    DO(ncmpi_inq_varid(file, "field", &id));
    DO(ncmpi_get_vara_double_all(file, id, start_, count_, field));
    DO(ncmpi_close(file));
}

int main(int argc, char **argv)
{
    if (argc != 4) return 2;
    begin(&argc, &argv, argv[2]);
    char forecast[4096], analysis[4096];
    snprintf(forecast, sizeof forecast, "%s/../forecast.nc", argv[2]);
    snprintf(analysis, sizeof analysis, "%s/../analysis.nc", argv[2]);
    int is_model = !strcmp(argv[1], "model"), cycles = atoi(argv[3]), divided = is_model ? 0 : 1;
    count_[0] = Y;
    count_[1] = X;
    start_[divided] = part(count_[divided], rank_, size_, &count_[divided]);
    size_t cells = count_[0] * count_[1];
    double *field = malloc(cells * sizeof *field), *expected = malloc(cells * sizeof *expected);
    for (size_t i = 0; i < cells; i++)
        expected[i] = field[i] = (start_[0] + i / count_[1]) * X + start_[1] + i % count_[1];
    for (int cycle = 0; cycle < cycles; cycle++) {
        if (is_model) {
            put(forecast, field, cycle);
            get(analysis, field, cycle);
        } else {
            get(forecast, field, cycle);
        }
        for (size_t i = 0; i < cells; i++) {
            if (is_model) expected[i] *= 2;
            if (field[i] != expected[i]) {
                fprintf(stderr, "%s, cycle %d: %g instead of %g\n", argv[1], cycle, field[i], expected[i]);
                MPI_Abort(MPI_COMM_WORLD, 1);
            }
            if (is_model) field[i] = expected[i] += cycle;
            else field[i] *= 2, expected[i] = 2 * expected[i] + cycle;
        }
        if (!is_model) put(analysis, field, cycle);
    }
    told("field", field, cells * sizeof *field);
    end();
    return 0;
}
