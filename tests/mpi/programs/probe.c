/* What MPI-IO through file views does, told so that two runs can be compared.
 *
 * usage: probe DIRECTORY [KEY=VALUE …]   (hints for MPI_File_open)
 *
 * See told.h. Views named in the environment variable PROBE_WITHOUT are left out. */
#include "told.h"

/* ---- views ---------------------------------------------------------------------------------- */

struct view {
    const char *name;
    MPI_Offset displacement;
    MPI_Datatype etype, filetype;
    int owned_etype;
};

static void pick_view(int which, struct view *view) {
    MPI_Datatype type, inner;
    view->displacement = 0;
    view->etype = MPI_INT;
    view->owned_etype = 0;
    switch (which) {
    case 0: /* every rank its blocks of three in turn */
        view->name = "vector";
        MPI_Type_vector(20, 3, 3 * size, MPI_INT, &type);
        type = resized(type, 20 * 3 * size * 4);
        view->displacement = 5 + rank * 12;
        break;
    case 1: {
        view->name = "indexed";
        int lengths[4] = {1, 4, 2, 3}, at[4] = {0, 3, 11, 17};
        MPI_Type_indexed(4, lengths, at, MPI_INT, &type);
        type = resized(type, 24 * size * 4);
        view->displacement = 8 + rank * 24 * 4;
        break;
    }
    case 2: {
        view->name = "hindexed_block";
        MPI_Aint at[3] = {0, 40, 100};
        MPI_Type_create_hindexed_block(3, 2, at, MPI_INT, &type);
        type = resized(type, 120 * size);
        view->displacement = 120 * rank;
        break;
    }
    case 3: {
        view->name = "subarray";
        int sizes[2] = {10, 6 * size}, part[2] = {8, 6}, from[2] = {1, 6 * rank};
        MPI_Type_create_subarray(2, sizes, part, from, MPI_ORDER_C, MPI_INT, &type);
        break;
    }
    case 4: {
        view->name = "darray";
        int sizes[2] = {9, 7 * size}, grid[2] = {1, size};
        int kinds[2] = {MPI_DISTRIBUTE_NONE, MPI_DISTRIBUTE_CYCLIC};
        int arguments[2] = {MPI_DISTRIBUTE_DFLT_DARG, 2};
        MPI_Type_create_darray(size, rank, 2, sizes, kinds, arguments, grid, MPI_ORDER_FORTRAN, MPI_INT, &type);
        break;
    }
    case 5: {
        view->name = "struct";
        int lengths[3] = {3, 1, 2};
        MPI_Aint at[3] = {0, 16, 40};
        MPI_Datatype types[3] = {MPI_BYTE, MPI_DOUBLE, MPI_SHORT};
        MPI_Type_create_struct(3, lengths, at, types, &type);
        type = resized(type, 64 * size);
        view->displacement = 64 * rank;
        view->etype = MPI_BYTE;
        break;
    }
    case 6:
        view->name = "nested";
        MPI_Type_vector(3, 1, 2, MPI_DOUBLE, &inner);
        inner = resized(inner, 64);
        MPI_Type_create_hvector(5, 2, 160, inner, &type);
        MPI_Type_free(&inner);
        type = resized(type, 1000 * size);
        view->displacement = 3 + 1000 * rank;
        view->etype = MPI_DOUBLE;
        break;
    case 7: {
        view->name = "derived etype";
        MPI_Datatype pair;
        MPI_Type_contiguous(2, MPI_SHORT, &pair);
        MPI_Type_commit(&pair);
        MPI_Type_vector(30, 1, size + 1, pair, &type);
        type = resized(type, 30 * (size + 1) * 4);
        view->etype = pair;
        view->owned_etype = 1;
        view->displacement = 4 * rank;
        break;
    }
    default: /* no gaps: nothing for a sieve */
        view->name = "contiguous";
        MPI_Type_contiguous(100, MPI_INT, &type);
        view->displacement = 4000 * rank;
        break;
    }
    MPI_Type_commit(&type);
    view->filetype = type;
}
#define VIEWS 9

/* ---- buffers -------------------------------------------------------------------------------- */

static MPI_Datatype pick_memory(int which, MPI_Datatype etype) {
    MPI_Datatype type;
    if (which == 0) MPI_Type_contiguous(1, etype, &type);
    else if (which == 1) MPI_Type_vector(2, 1, 3, etype, &type);
    else {
        int lengths[2] = {1, 2};
        MPI_Aint at[2] = {32, 64};
        MPI_Datatype types[2] = {etype, etype};
        MPI_Type_create_struct(2, lengths, at, types, &type);
        type = resized(type, 128);
    }
    MPI_Type_commit(&type);
    return type;
}
static const char *memory_names[] = {"dense", "vector", "struct"};

static void through_view(int which, int memory) {
    struct view view;
    pick_view(which, &view);
    const char *without = getenv("PROBE_WITHOUT");
    if (without && strstr(without, view.name)) {
        MPI_Type_free(&view.filetype);
        if (view.owned_etype) MPI_Type_free(&view.etype);
        return;
    }
    MPI_Datatype type = pick_memory(memory, view.etype);
    char name[64];
    sprintf(name, "view%d-%d", which, memory);
    TELL("%s, %s\n", view.name, memory_names[memory]);
    make_file(name, FILLED);
    MPI_File file = open_file(name, MPI_MODE_RDWR);
    int code = MPI_File_set_view(file, view.displacement, view.etype, view.filetype, "native", hints);
    TELL("  set_view: class %d\n", class_of(code));

    MPI_Status status;
    fill(1);
    tell_call("write", MPI_File_write(file, buffer, 7, type, &status), file, &status, type);
    fill(2);
    tell_call("write", MPI_File_write(file, buffer, 40, type, &status), file, &status, type);
    tell_call("write nothing", MPI_File_write(file, buffer, 0, type, &status), file, &status, type);
    fill(3);
    tell_call("write_at", MPI_File_write_at(file, 203, buffer, 25, type, &status), file, &status, type);
    fill(4);
    tell_call("write_at", MPI_File_write_at(file, 11, buffer, 1, type, &status), file, &status, type);
    TELL("  without status: %d\n", class_of(MPI_File_write_at(file, 13, buffer, 2, type, MPI_STATUS_IGNORE)));
    MPI_File_sync(file);
    MPI_Barrier(MPI_COMM_WORLD);
    MPI_File_sync(file);

    fill(5);
    tell_call("read_at", MPI_File_read_at(file, 1, buffer, 60, type, &status), file, &status, type);
    TELL("  buffer: %016llx\n", (unsigned long long)sum_of(buffer, sizeof buffer));
    go_to(file, 0);
    fill(6);
    tell_call("read", MPI_File_read(file, buffer, 3, type, &status), file, &status, type);
    tell_call("read", MPI_File_read(file, buffer + 40000, 50, type, &status), file, &status, type);
    TELL("  buffer: %016llx\n", (unsigned long long)sum_of(buffer, sizeof buffer));
    TELL("  without status: %d\n", class_of(MPI_File_read(file, buffer, 2, type, MPI_STATUS_IGNORE)));
    MPI_Offset end = -7;
    MPI_File_get_size(file, &end);
    TELL("  size: %lld\n", (long long)end);
    TELL("  close: %d\n", class_of(MPI_File_close(&file)));
    tell_file(name);
    MPI_Type_free(&type);
    MPI_Type_free(&view.filetype);
    if (view.owned_etype) MPI_Type_free(&view.etype);
}

/* Reading up to the end of the file and beyond it. ROMIO claims to have read what lies behind the end,
 * too: beside the count stands what the file has. */
static void short_file(void) {
    TELL("short file\n");
    make_file("short", 1000);
    MPI_File file = open_file("short", MPI_MODE_RDONLY);
    MPI_Datatype type;
    MPI_Type_vector(4, 1, 3, MPI_INT, &type);
    MPI_Type_commit(&type);
    MPI_File_set_view(file, 4 * rank, MPI_INT, type, "native", hints);
    MPI_Status status;
    for (int i = 0; i < 5; i++) {
        int from = 60 + 20 * i, have = 0, bytes = -7, code;
        fill(i);
        if (i < 4) code = MPI_File_read_at(file, from, buffer, 30, MPI_INT, &status);
        else {
            from = 70;
            go_to(file, from);
            code = MPI_File_read(file, buffer, 30, MPI_INT, &status);
        }
        MPI_Get_elements(&status, MPI_BYTE, &bytes);
        for (int k = from; k < from + 30; k++) have += 4 * rank + 4 * (k / 4 * 10 + k % 4 * 3) + 4 <= 1000;
        MPI_Offset position = -7;
        MPI_File_get_position(file, &position);
        TELL("  read: class %d, position %lld, bytes %d, sum of %d ints %016llx\n", class_of(code),
             (long long)position, bytes, have, (unsigned long long)sum_of(buffer, 4 * (size_t)have));
    }
    tell_call("write to read-only", MPI_File_write_at(file, 0, buffer, 4, MPI_INT, &status), file, &status, MPI_INT);
    MPI_File_close(&file);
    tell_file("short");
    MPI_Type_free(&type);
}

/* All ranks write every so many ints of one region, again and again: whoever rewrites what lies between
 * without a lock loses what others wrote. With `neighbour` rank 0 writes whole blocks between those of
 * the others, through a view without holes. */
static void contended(const char *name, int neighbour) {
    enum { INTS = 600, ROUNDS = 40 };
    TELL("%s\n", name);
    make_file(name, 0);
    MPI_File file = open_file(name, MPI_MODE_RDWR | MPI_MODE_CREATE);
    MPI_Datatype type;
    int dense = neighbour && rank == 0;
    MPI_Type_vector(INTS, 1, size, MPI_INT, &type);
    type = resized(type, INTS * size * 4);
    MPI_Type_commit(&type);
    if (dense) MPI_File_set_view(file, 0, MPI_INT, MPI_INT, "native", hints);
    else MPI_File_set_view(file, 4 * rank, MPI_INT, type, "native", hints);
    static int values[INTS], seen[INTS];
    int lost = 0;
    for (int round = 0; round < ROUNDS; round++) {
        for (int i = 0; i < INTS; i++) values[i] = 1000000 * rank + 1000 * round + i;
        MPI_Barrier(MPI_COMM_WORLD);
        if (dense) /* one int at a time, there where a strided view would have it */
            for (int i = 0; i < INTS; i++) MPI_File_write_at(file, (MPI_Offset)i * size, &values[i], 1, MPI_INT, MPI_STATUS_IGNORE);
        else MPI_File_write_at(file, 0, values, INTS, MPI_INT, MPI_STATUS_IGNORE);
        MPI_File_sync(file);
        MPI_Barrier(MPI_COMM_WORLD);
        MPI_File_sync(file);
        if (dense)
            for (int i = 0; i < INTS; i++) MPI_File_read_at(file, (MPI_Offset)i * size, &seen[i], 1, MPI_INT, MPI_STATUS_IGNORE);
        else MPI_File_read_at(file, 0, seen, INTS, MPI_INT, MPI_STATUS_IGNORE);
        for (int i = 0; i < INTS; i++) lost += values[i] != seen[i];
    }
    TELL("  lost: %d\n", lost);
    MPI_File_close(&file);
    MPI_Type_free(&type);
}

/* Writing where there is no file yet: the wanted bytes count, what lies between is the library's. */
static void new_file(void) {
    TELL("new file\n");
    make_file("new", 0);
    MPI_File file = open_file("new", MPI_MODE_WRONLY | MPI_MODE_CREATE);
    MPI_Datatype type;
    MPI_Type_vector(50, 2, 2 * size, MPI_INT, &type);
    MPI_Type_commit(&type);
    MPI_File_set_view(file, 8 * rank, MPI_INT, type, "native", hints);
    MPI_Status status;
    fill(7);
    tell_call("write", MPI_File_write(file, buffer, 100, MPI_INT, &status), file, &status, MPI_INT);
    MPI_File_close(&file);
    tell_file("new");
    MPI_Type_free(&type);
}

/* Beyond what 32 bits can address. */
static void far_away(void) {
    TELL("far away\n");
    make_file("far", 0);
    MPI_File file = open_file("far", MPI_MODE_RDWR | MPI_MODE_CREATE);
    MPI_Datatype type;
    MPI_Type_create_hvector(3, 1, (MPI_Aint)3 << 30, MPI_DOUBLE, &type);
    type = resized(type, (MPI_Aint)9 << 30);
    MPI_Type_commit(&type);
    MPI_File_set_view(file, ((MPI_Offset)5 << 30) + 8 * rank, MPI_DOUBLE, type, "native", hints);
    MPI_Status status;
    fill(8);
    tell_call("write", MPI_File_write(file, buffer, 5, MPI_DOUBLE, &status), file, &status, MPI_DOUBLE);
    fill(9);
    tell_call("read_at", MPI_File_read_at(file, 1, buffer, 3, MPI_DOUBLE, &status), file, &status, MPI_DOUBLE);
    TELL("  buffer: %016llx\n", (unsigned long long)sum_of(buffer, 64));
    MPI_Offset end = -7;
    MPI_File_sync(file);
    MPI_Barrier(MPI_COMM_WORLD);
    MPI_File_sync(file);
    MPI_File_get_size(file, &end);
    TELL("  size: %lld\n", (long long)end);
    MPI_File_close(&file);
    MPI_Type_free(&type);
    MPI_Barrier(MPI_COMM_WORLD);
    char path[4096];
    path_of(path, "far");
    if (rank == 0) unlink(path);
}

/* What stays with the MPI library: atomic mode, collective calls, shared pointers, nonblocking calls,
 * mixed with independent ones on one file. */
static void mixed(void) {
    TELL("mixed\n");
    make_file("mixed", FILLED);
    MPI_File file = open_file("mixed", MPI_MODE_RDWR);
    MPI_Datatype type;
    MPI_Type_vector(10, 1, size, MPI_INT, &type);
    type = resized(type, 10 * size * 4);
    MPI_Type_commit(&type);
    MPI_File_set_view(file, 4 * rank, MPI_INT, type, "native", hints);
    MPI_Status status;
    fill(10);
    tell_call("write", MPI_File_write(file, buffer, 9, MPI_INT, &status), file, &status, MPI_INT);
    /* What an aggregator writes without a lock, another rank's data sieving may write back as it was. */
    MPI_Barrier(MPI_COMM_WORLD);
    tell_call("write_all", MPI_File_write_all(file, buffer, 11, MPI_INT, &status), file, &status, MPI_INT);
    MPI_Barrier(MPI_COMM_WORLD);
    tell_call("write", MPI_File_write(file, buffer, 6, MPI_INT, &status), file, &status, MPI_INT);
    MPI_Barrier(MPI_COMM_WORLD);
    MPI_File_set_atomicity(file, 1);
    tell_call("atomic write_at", MPI_File_write_at(file, 40, buffer, 4, MPI_INT, &status), file, &status, MPI_INT);
    MPI_File_set_atomicity(file, 0);
    MPI_Barrier(MPI_COMM_WORLD);
    MPI_Request request;
    MPI_File_iwrite_at(file, 50, buffer, 5, MPI_INT, &request);
    MPI_Wait(&request, &status);
    tell_call("iwrite_at", MPI_SUCCESS, file, &status, MPI_INT);
    MPI_File_sync(file);
    MPI_Barrier(MPI_COMM_WORLD);
    MPI_File_sync(file);
    go_to(file, 0);
    fill(11);
    tell_call("read_all", MPI_File_read_all(file, buffer, 30, MPI_INT, &status), file, &status, MPI_INT);
    tell_call("read", MPI_File_read(file, buffer + 4096, 30, MPI_INT, &status), file, &status, MPI_INT);
    TELL("  buffer: %016llx\n", (unsigned long long)sum_of(buffer, sizeof buffer));
    /* A view of bytes again. */
    MPI_Barrier(MPI_COMM_WORLD);
    MPI_File_set_view(file, 0, MPI_BYTE, MPI_BYTE, "native", MPI_INFO_NULL);
    tell_call("read_at", MPI_File_read_at(file, 100, buffer, 300, MPI_BYTE, &status), file, &status, MPI_BYTE);
    TELL("  buffer: %016llx\n", (unsigned long long)sum_of(buffer, sizeof buffer));
    MPI_File_close(&file);
    tell_file("mixed");
    MPI_Type_free(&type);
}

/* A wish for the sieve that comes when another file has the name. */
static void replaced(void) {
    TELL("replaced\n");
    make_file("replaced", FILLED);
    MPI_Info later, now;
    MPI_Info_create(&later);
    MPI_Info_set(later, "sluice_sieve", "disable");
    MPI_Info_create(&now);
    MPI_Info_set(now, "sluice_sieve", "romio");
    char path[4096], aside[4096];
    path_of(path, "replaced");
    path_of(aside, "aside");
    MPI_File file;
    MPI_File_open(MPI_COMM_WORLD, path, MPI_MODE_RDWR, later, &file);
    TELL("  open: class 0\n");
    MPI_Barrier(MPI_COMM_WORLD);
    if (rank == 0) rename(path, aside);
    make_file("replaced", 100);
    MPI_Datatype type;
    MPI_Type_vector(10, 1, 2 * size, MPI_INT, &type);
    type = resized(type, 20 * size * 4);
    MPI_Type_commit(&type);
    MPI_File_set_view(file, 8 * rank, MPI_INT, type, "native", now);
    MPI_Status status;
    fill(12);
    tell_call("write", MPI_File_write(file, buffer, 50, MPI_INT, &status), file, &status, MPI_INT);
    MPI_File_set_info(file, later);
    MPI_File_set_info(file, now);
    tell_call("read_at", MPI_File_read_at(file, 40, buffer, 50, MPI_INT, &status), file, &status, MPI_INT);
    TELL("  buffer: %016llx\n", (unsigned long long)sum_of(buffer, sizeof buffer));
    MPI_File_close(&file);
    tell_file("replaced");
    tell_file("aside");
    MPI_Type_free(&type);
    MPI_Info_free(&later);
    MPI_Info_free(&now);
}

/* Open MPI refuses this view and uses it nevertheless; others do as they like. */
static void refused_view(void) {
#ifdef OPEN_MPI
    TELL("refused view\n");
    make_file("refused", FILLED);
    MPI_File file = open_file("refused", MPI_MODE_RDWR);
    MPI_Datatype pair, type;
    int lengths[] = {4, 4};
    MPI_Aint places[] = {-8, 8};
    MPI_Type_create_hindexed(2, lengths, places, MPI_BYTE, &pair);
    MPI_Type_create_resized(pair, -16, 48, &type);
    MPI_Type_commit(&type);
    MPI_File_set_view(file, 4096 * (rank + 1), MPI_BYTE, type, "native", MPI_INFO_NULL);
    MPI_Status status;
    fill(13);
    tell_call("write", MPI_File_write(file, buffer, 200, MPI_BYTE, &status), file, &status, MPI_BYTE);
    tell_call("read", MPI_File_read(file, buffer, 200, MPI_BYTE, &status), file, &status, MPI_BYTE);
    TELL("  buffer: %016llx\n", (unsigned long long)sum_of(buffer, sizeof buffer));
    MPI_File_close(&file);
    tell_file("refused");
    MPI_Type_free(&pair);
    MPI_Type_free(&type);
#endif
}

/* Only the library knows whether a datatype has been committed. */
static void uncommitted(MPI_File file) {
    MPI_Datatype type;
    MPI_Type_vector(3, 1, 2, MPI_INT, &type);
    MPI_Status status;
    fill(14);
    tell_call("read", MPI_File_read(file, buffer, 2, type, &status), file, &status, MPI_INT);
    tell_call("write_at", MPI_File_write_at(file, 1, buffer, 2, type, &status), file, &status, MPI_INT);
    TELL("  buffer: %016llx\n", (unsigned long long)sum_of(buffer, sizeof buffer));
    MPI_Type_free(&type);
    tell_file("wrong");
}

static void wrong_calls(void) {
    TELL("wrong calls\n");
    make_file("wrong", 100);
    MPI_File file = open_file("absent/file", MPI_MODE_RDWR);
    file = open_file("wrong", MPI_MODE_RDWR | MPI_MODE_DELETE_ON_CLOSE);
    MPI_Datatype type;
    MPI_Type_vector(2, 1, 3, MPI_INT, &type);
    MPI_Type_commit(&type);
    MPI_File_set_view(file, 0, MPI_INT, type, "native", MPI_INFO_NULL);
    MPI_Status status;
    TELL("  negative count: %d\n", class_of(MPI_File_read_at(file, 0, buffer, -1, MPI_INT, &status)));
    TELL("  negative offset: %d\n", class_of(MPI_File_read_at(file, -4, buffer, 1, MPI_INT, &status)));
    TELL("  part of an etype: %d\n", class_of(MPI_File_read_at(file, 0, buffer, 3, MPI_SHORT, &status)));
    TELL("  no datatype: %d\n", class_of(MPI_File_read_at(file, 0, buffer, 1, MPI_DATATYPE_NULL, &status)));
    /* Intel MPI does not look at the datatype of a call for nothing, by which we ask. */
    static char version[MPI_MAX_LIBRARY_VERSION_STRING];
    int length;
    MPI_Get_library_version(version, &length);
    if (!strstr(version, "Intel")) uncommitted(file);
    TELL("  close: %d\n", class_of(MPI_File_close(&file)));
    MPI_Barrier(MPI_COMM_WORLD);
    char path[4096];
    path_of(path, "wrong");
    TELL("  deleted: %d\n", access(path, F_OK) == 0 ? 0 : errno);
    MPI_Type_free(&type);
}

int main(int argc, char **argv) {
    begin(&argc, &argv);
    for (int view = 0; view < VIEWS; view++)
        for (int memory = 0; memory < 3; memory++) through_view(view, memory);
    short_file();
    new_file();
    far_away();
    mixed();
    replaced();
    refused_view();
    wrong_calls();
    contended("contended", 0);
    /* Natively, ROMIO loses data here. */
    if (getenv("PROBE_NEIGHBOURS")) contended("neighbours", 1);
    end();
    return 0;
}
