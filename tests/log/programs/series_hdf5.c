/* A writer of time steps with parallel HDF5: chunked data sets that grow, groups and attributes that come later,
 * H5Fflush after each step. Metadata blocks are rewritten by whichever rank the library chooses.
 *
 * usage: series_hdf5 SIDE DIRECTORY [independent|collective]; see scene.h */
#include <hdf5.h>

#include "scene.h"

enum { STEPS = 10, LENGTH = 700 };

#define OK(call) ok((long)(call), #call, __LINE__)
static hid_t ok(long code, const char *call, int line) {
    if (code < 0) complain("line %d: %.120s", line, call);
    return (hid_t)code;
}

static double value(int step, int writer, int place) { return step * 1000.0 + writer + place / 1024.0; }

static void fill_step(double *into, int step, int writer) {
    for (int i = 0; i < LENGTH; i++) into[i] = value(step, writer, i);
}

static hid_t parallel(void) {
    hid_t access = OK(H5Pcreate(H5P_FILE_ACCESS));
    OK(H5Pset_fapl_mpio(access, MPI_COMM_WORLD, MPI_INFO_NULL));
    return access;
}

/* Data sets without the time at which they were made: two runs can be compared. */
static hid_t timeless(hid_t class) {
    hid_t creation = OK(H5Pcreate(class));
    OK(H5Pset_obj_track_times(creation, 0));
    return creation;
}

static void write_attribute(hid_t object, const char *name, int step) {
    hid_t scalar = OK(H5Screate(H5S_SCALAR)), attribute = OK(H5Acreate2(object, name, H5T_STD_I32LE, scalar, H5P_DEFAULT, H5P_DEFAULT));
    OK(H5Awrite(attribute, H5T_NATIVE_INT, &step));
    OK(H5Aclose(attribute));
    OK(H5Sclose(scalar));
}

static void write_steps(hid_t file, hid_t transfer, int from, int to) {
    hsize_t each = LENGTH, whole = (hsize_t)(LENGTH * size), start = (hsize_t)(LENGTH * rank);
    double mine[LENGTH];
    hid_t growing = OK(H5Dopen2(file, "growing", H5P_DEFAULT));
    for (int step = from; step < to; step++) {
        fill_step(mine, step, rank);
        /* A row more of the data set that grows. */
        hsize_t extent[2] = {(hsize_t)step + 1, whole}, at[2] = {(hsize_t)step, start}, count[2] = {1, each};
        OK(H5Dset_extent(growing, extent));
        hid_t space = OK(H5Dget_space(growing)), memory = OK(H5Screate_simple(1, &each, NULL));
        OK(H5Sselect_hyperslab(space, H5S_SELECT_SET, at, NULL, count, NULL));
        OK(H5Dwrite(growing, H5T_NATIVE_DOUBLE, memory, space, transfer, mine));
        OK(H5Sclose(space));
        /* A group and a data set of this step's own. */
        char name[32];
        sprintf(name, "step%02d", step);
        hid_t creation = timeless(H5P_DATASET_CREATE), group = OK(H5Gcreate2(file, name, H5P_DEFAULT, H5P_DEFAULT, H5P_DEFAULT));
        space = OK(H5Screate_simple(1, &whole, NULL));
        hid_t own = OK(H5Dcreate2(group, "field", H5T_IEEE_F64LE, space, H5P_DEFAULT, creation, H5P_DEFAULT));
        OK(H5Sselect_hyperslab(space, H5S_SELECT_SET, &start, NULL, &each, NULL));
        OK(H5Dwrite(own, H5T_NATIVE_DOUBLE, memory, space, transfer, mine));
        write_attribute(own, "step", step);
        write_attribute(file, name, step);
        OK(H5Dclose(own));
        OK(H5Gclose(group));
        OK(H5Sclose(space));
        OK(H5Sclose(memory));
        OK(H5Pclose(creation));
        OK(H5Fflush(file, H5F_SCOPE_GLOBAL));
    }
    OK(H5Dclose(growing));
}

/* Everything, by every rank. */
static void check_steps(hid_t file, int to) {
    double *row = malloc(sizeof(double) * LENGTH * (unsigned)size), should[LENGTH];
    hsize_t whole = (hsize_t)(LENGTH * size);
    hid_t growing = OK(H5Dopen2(file, "growing", H5P_DEFAULT)), memory = OK(H5Screate_simple(1, &whole, NULL));
    for (int step = 0; step < to; step++)
        for (int which = 0; which < 2; which++) {
            char name[32];
            sprintf(name, "step%02d/field", step);
            hsize_t at[2] = {(hsize_t)step, 0}, count[2] = {1, whole};
            hid_t set = which ? OK(H5Dopen2(file, name, H5P_DEFAULT)) : growing, space = OK(H5Dget_space(set));
            if (!which) OK(H5Sselect_hyperslab(space, H5S_SELECT_SET, at, NULL, count, NULL));
            OK(H5Dread(set, H5T_NATIVE_DOUBLE, memory, space, H5P_DEFAULT, row));
            for (int writer = 0; writer < size; writer++) {
                fill_step(should, step, writer);
                if (memcmp(row + writer * LENGTH, should, sizeof should)) complain("step %d, what rank %d wrote, %s", step, writer, which ? name : "growing");
            }
            OK(H5Sclose(space));
            if (!which) continue;
            int seen = -1;
            hid_t attribute = OK(H5Aopen(set, "step", H5P_DEFAULT));
            OK(H5Aread(attribute, H5T_NATIVE_INT, &seen));
            if (seen != step) complain("the attribute of step %d is %d", step, seen);
            OK(H5Aclose(attribute));
            OK(H5Dclose(set));
        }
    OK(H5Sclose(memory));
    OK(H5Dclose(growing));
    free(row);
}

static void series(H5FD_mpio_xfer_t mode) {
    hid_t access = parallel(), transfer = OK(H5Pcreate(H5P_DATASET_XFER)), creation = timeless(H5P_DATASET_CREATE);
    OK(H5Pset_dxpl_mpio(transfer, mode));
    hsize_t none[2] = {0, (hsize_t)(LENGTH * size)}, ever[2] = {H5S_UNLIMITED, (hsize_t)(LENGTH * size)}, chunk[2] = {3, 100};
    hid_t space = OK(H5Screate_simple(2, none, ever));
    OK(H5Pset_chunk(creation, 2, chunk));
    char name[64];
    snprintf(name, sizeof name, "%s.h5", part);
    hid_t file = OK(H5Fcreate(path_of(name), H5F_ACC_TRUNC, H5P_DEFAULT, access));
    hid_t growing = OK(H5Dcreate2(file, "growing", H5T_IEEE_F64LE, space, H5P_DEFAULT, creation, H5P_DEFAULT));
    OK(H5Dclose(growing));
    write_steps(file, transfer, 0, STEPS / 2);
    check_steps(file, STEPS / 2);
    OK(H5Fclose(file));
    barrier();
    /* A restart appends. */
    file = OK(H5Fopen(path_of(name), H5F_ACC_RDWR, access));
    check_steps(file, STEPS / 2);
    write_steps(file, transfer, STEPS / 2, STEPS);
    OK(H5Fclose(file));
    barrier();
    /* Each rank by itself, by open(2). */
    file = OK(H5Fopen(path_of(name), H5F_ACC_RDONLY, H5P_DEFAULT));
    check_steps(file, STEPS);
    OK(H5Fclose(file));
    OK(H5Sclose(space));
    OK(H5Pclose(creation));
    OK(H5Pclose(transfer));
    OK(H5Pclose(access));
    barrier();
}

static void independent(void) { series(H5FD_MPIO_INDEPENDENT); }
static void collective(void) { series(H5FD_MPIO_COLLECTIVE); }

static const struct part parts[] = {{"independent", independent}, {"collective", collective}, {NULL, NULL}};

int main(int argc, char **argv) { return perform(argc, argv, parts); }
