/* A writer of time steps with PnetCDF: record variables that grow, collective, independent and nonblocking puts;
 * definitions that come later, for which everything behind the header is moved by ranks that did not write it.
 *
 * usage: series_pnetcdf SIDE DIRECTORY series; see scene.h */
#include <pnetcdf.h>

#include "scene.h"

enum { STEPS = 9, LENGTH = 600, LATER = 4 };

#define OK(call) ok(call, #call, __LINE__)
static void ok(int code, const char *call, int line) {
    if (code != NC_NOERR) complain("line %d: %.120s: %s", line, call, ncmpi_strerror(code));
}

static int value(int variable, int step, int writer, int place) { return variable * 100000000 + step * 1000000 + writer * 10000 + place; }

static void fill_step(int *into, int variable, int step, int writer) {
    for (int i = 0; i < LENGTH; i++) into[i] = value(variable, step, writer, i);
}

/* Rank r's part of a row; `variable` of the steps from `from` on. */
static void check_rows(int file, const char *name, int variable, int from, int to) {
    int id = -1, *row = malloc(sizeof(int) * LENGTH * (unsigned)size), should[LENGTH];
    OK(ncmpi_inq_varid(file, name, &id));
    for (int step = from; step < to; step++) {
        MPI_Offset start[2] = {step, 0}, count[2] = {1, LENGTH * size};
        OK(ncmpi_get_vara_int_all(file, id, start, count, row));
        for (int writer = 0; writer < size; writer++) {
            fill_step(should, variable, step, writer);
            if (memcmp(row + writer * LENGTH, should, sizeof should)) complain("%s, step %d, what rank %d wrote", name, step, writer);
        }
    }
    free(row);
}

static void series(void) {
    int file, dimensions[2], field, flux, grid, later = -1;
    OK(ncmpi_create(MPI_COMM_WORLD, path_of("series.nc"), NC_CLOBBER | NC_64BIT_DATA, MPI_INFO_NULL, &file));
    OK(ncmpi_def_dim(file, "time", NC_UNLIMITED, &dimensions[0]));
    OK(ncmpi_def_dim(file, "place", LENGTH * size, &dimensions[1]));
    OK(ncmpi_def_var(file, "field", NC_INT, 2, dimensions, &field));
    OK(ncmpi_def_var(file, "flux", NC_INT, 2, dimensions, &flux));
    OK(ncmpi_def_var(file, "grid", NC_INT, 1, &dimensions[1], &grid));
    OK(ncmpi_enddef(file));
    int mine[3][LENGTH], steps = 0;
    MPI_Offset place = LENGTH * rank, each = LENGTH;
    fill_step(mine[0], 9, 0, rank);
    OK(ncmpi_put_vara_int_all(file, grid, &place, &each, mine[0]));
    for (int step = 0; step < STEPS; step++) {
        MPI_Offset start[2] = {step, LENGTH * rank}, count[2] = {1, LENGTH};
        if (step == LATER) {
            /* The header gets longer than its room: all data must move. */
            char text[3000];
            memset(text, 'x', sizeof text);
            OK(ncmpi_redef(file));
            OK(ncmpi_def_var(file, "later", NC_INT, 2, dimensions, &later));
            OK(ncmpi_put_att_text(file, NC_GLOBAL, "history", sizeof text, text));
            OK(ncmpi_enddef(file));
            check_rows(file, "field", 1, 0, step);
        }
        fill_step(mine[0], 1, step, rank);
        fill_step(mine[1], 2, step, rank);
        fill_step(mine[2], 3, step, rank);
        if (step % 3 == 0) {
            OK(ncmpi_put_vara_int_all(file, field, start, count, mine[0]));
            OK(ncmpi_put_vara_int_all(file, flux, start, count, mine[1]));
        } else if (step % 3 == 1) {
            OK(ncmpi_begin_indep_data(file));
            OK(ncmpi_put_vara_int(file, field, start, count, mine[0]));
            OK(ncmpi_put_vara_int(file, flux, start, count, mine[1]));
            OK(ncmpi_end_indep_data(file));
        } else {
            int requests[2], states[2];
            OK(ncmpi_iput_vara_int(file, field, start, count, mine[0], &requests[0]));
            OK(ncmpi_iput_vara_int(file, flux, start, count, mine[1], &requests[1]));
            OK(ncmpi_wait_all(file, 2, requests, states));
            OK(states[0]);
            OK(states[1]);
        }
        if (later >= 0) OK(ncmpi_put_vara_int_all(file, later, start, count, mine[2]));
        steps++;
        OK(ncmpi_sync(file));
        barrier();
        OK(ncmpi_sync(file));
        MPI_Offset records = -1;
        OK(ncmpi_inq_dimlen(file, dimensions[0], &records));
        if (records != steps) complain("%lld records after step %d", (long long)records, step);
        check_rows(file, "flux", 2, step, step + 1);
    }
    if (later >= 0) {
        /* What nobody wrote has no value: fill it, so that runs can be compared. */
        for (int step = 0; step < LATER; step++) {
            MPI_Offset start[2] = {step, LENGTH * rank}, count[2] = {1, LENGTH};
            fill_step(mine[2], 3, step, rank);
            OK(ncmpi_put_vara_int_all(file, later, start, count, mine[2]));
        }
    }
    OK(ncmpi_close(file));
    barrier();
    OK(ncmpi_open(MPI_COMM_WORLD, path_of("series.nc"), NC_NOWRITE, MPI_INFO_NULL, &file));
    check_rows(file, "field", 1, 0, STEPS);
    check_rows(file, "flux", 2, 0, STEPS);
    check_rows(file, "later", 3, 0, STEPS);
    OK(ncmpi_close(file));
}

static const struct part parts[] = {{"series", series}, {NULL, NULL}};

int main(int argc, char **argv) { return perform(argc, argv, parts); }
