/* What MPI-IO does with a file beside writing at places: sizes, deletion, atomic mode, shared and individual
 * pointers, nonblocking and split calls, appending; and what becomes of the name meanwhile. See scene.h. */
#include "scene.h"

enum { RECORD = 1009 };

/* The size after each step, by the handle and by stat(2). */
static void size_everywhere(MPI_File file, int line) {
    size_is(file, model_size, line);
    struct stat seen = {0};
    if (stat(path_of(part), &seen) != 0 || (size_t)seen.st_size != model_size)
        complain("line %d: stat says %lld bytes, should be %zu", line, (long long)seen.st_size, model_size);
    barrier();
}
#define SIZES(file) size_everywhere(file, __LINE__)

static void write_record(MPI_File file, unsigned epoch, unsigned writer, uint64_t at) {
    void *bytes = put(epoch, writer, at, RECORD);
    if (bytes) DO(MPI_File_write_at(file, (MPI_Offset)at, bytes, RECORD, MPI_BYTE, MPI_STATUS_IGNORE));
}

static void sizes(void) {
    MPI_File file = new_file(part);
    SIZES(file);
    for (unsigned writer = 0; writer < (unsigned)size; writer++) write_record(file, 1, writer, writer * RECORD);
    meet(file);
    SIZES(file);
    /* Longer: zeros. Shorter: gone, and zeros when it grows again. */
    DO(MPI_File_set_size(file, 20000));
    model_resize(20000);
    SIZES(file);
    check_here(file);
    barrier();
    DO(MPI_File_set_size(file, 500));
    model_resize(500);
    SIZES(file);
    write_record(file, 2, (unsigned)size - 1, 3000);
    meet(file);
    SIZES(file);
    check_here(file);
    DO(MPI_File_set_size(file, 0));
    model_resize(0);
    SIZES(file);
    for (unsigned writer = 0; writer < (unsigned)size; writer++) write_record(file, 3, writer, writer * 2 * RECORD);
    meet(file);
    check_here(file);
    finish(&file, part);
}

/* Bytes that were there stay as they are. What the new ones are is left open by MPI (OMPIO puts copies of other
 * bytes of the file there): all are written before they are looked at. */
static void preallocate(void) {
    MPI_File file = filled_file(part, 10000);
    DO(MPI_File_preallocate(file, 6000));
    SIZES(file);
    DO(MPI_File_preallocate(file, 50000));
    model_resize(50000);
    SIZES(file);
    uint64_t each = 40000 / (unsigned)size + 1;
    for (unsigned writer = 0; writer < (unsigned)size; writer++) {
        void *bytes = put(1, writer, 10000 + writer * each, each);
        if (bytes) DO(MPI_File_write_at(file, (MPI_Offset)(10000 + writer * each), bytes, (int)each, MPI_BYTE, MPI_STATUS_IGNORE));
    }
    meet(file);
    check_here(file);
    finish(&file, part);
}

/* A size that is asked for between writes: one's own are counted at once. */
static void own_size(void) {
    MPI_File file = new_file(part);
    for (unsigned writer = 0; writer < (unsigned)size; writer++) {
        for (unsigned i = 0; i < 5; i++) {
            write_record(file, 1, writer, model_size + i);
            if (writer == (unsigned)rank) SIZE(file);
        }
        meet(file);
        SIZE(file);
        barrier();
    }
    finish(&file, part);
}

static int exists(const char *name) {
    struct stat seen;
    return stat(path_of(name), &seen) == 0;
}

static void deletion(void) {
    model_resize(0);
    MPI_File file = open_file("deletion-on-close", MPI_MODE_CREATE | MPI_MODE_RDWR | MPI_MODE_DELETE_ON_CLOSE);
    write_record(file, 1, 0, 0);
    meet(file);
    check_here(file);
    if (!exists("deletion-on-close")) complain("deleted before the close");
    DO(MPI_File_close(&file));
    barrier();
    if (exists("deletion-on-close")) complain("not deleted by the close");

    file = new_file("deletion");
    write_record(file, 1, (unsigned)size - 1, 5000);
    finish(&file, "deletion");
    if (rank == 0) DO(MPI_File_delete(path_of("deletion"), MPI_INFO_NULL));
    barrier();
    if (exists("deletion")) complain("MPI_File_delete left it");
    if (rank == 0) tell("delete again: class is no success: %d", class_of(MPI_File_delete(path_of("deletion"), MPI_INFO_NULL)) != 0);
    /* The same name again, with nothing of what was. */
    model_resize(0);
    file = open_file("deletion", MPI_MODE_CREATE | MPI_MODE_EXCL | MPI_MODE_RDWR);
    SIZE(file);
    barrier();
    write_record(file, 2, 0, 100);
    meet(file);
    check_here(file);
    finish(&file, "deletion");
}

/* Between closings rank 0 renames, replaces, shortens by POSIX; all ranks open what is there then. */
static void renamed(void) {
    for (unsigned epoch = 1; epoch <= 3; epoch++) {
        model_resize(0);
        MPI_File file = open_file("renamed.new", MPI_MODE_CREATE | MPI_MODE_RDWR);
        SIZE(file);
        barrier();
        for (unsigned writer = 0; writer < (unsigned)size; writer++) write_record(file, epoch, writer, writer * RECORD);
        finish(&file, "renamed.new");
        if (rank == 0 && rename(path_of("renamed.new"), path_of("renamed")) != 0) complain("rename: %s", strerror(errno));
        barrier();
        if (exists("renamed.new")) complain("the old name is still there");
        check_path("renamed");
        barrier();
        if (rank == 0 && truncate(path_of("renamed"), RECORD / 2) != 0) complain("truncate: %s", strerror(errno));
        barrier();
        model_resize(RECORD / 2);
        file = open_file("renamed", MPI_MODE_RDWR);
        SIZE(file);
        barrier();
        write_record(file, 10 + epoch, (unsigned)size - 1, RECORD);
        meet(file);
        check_here(file);
        finish(&file, "renamed");
    }
    if (rank == 0 && link(path_of("renamed"), path_of("renamed.kept")) != 0) complain("link: %s", strerror(errno));
    if (rank == 0 && unlink(path_of("renamed")) != 0) complain("unlink: %s", strerror(errno));
    barrier();
    if (exists("renamed")) complain("unlinked, and there");
    check_path("renamed.kept");
}

/* In atomic mode a write can be read by all after a barrier, and overlapping writes do not mix. */
static void atomic(void) {
    enum { EACH = 40000 };
    MPI_File file = filled_file(part, EACH);
    DO(MPI_File_set_atomicity(file, 1));
    int flag = 0;
    DO(MPI_File_get_atomicity(file, &flag));
    if (!flag) complain("not atomic");
    unsigned char *bytes = malloc(EACH), *should = malloc(EACH);
    for (unsigned epoch = 1; epoch <= 6; epoch++) {
        fill(bytes, epoch, (unsigned)rank, 0, EACH);
        DO(MPI_File_write_at(file, 0, bytes, EACH, MPI_BYTE, MPI_STATUS_IGNORE));
        barrier();
        DO(MPI_File_read_at(file, 0, bytes, EACH, MPI_BYTE, MPI_STATUS_IGNORE));
        int writer = 0;
        for (; writer < size; writer++) {
            fill(should, epoch, (unsigned)writer, 0, EACH);
            if (memcmp(bytes, should, EACH) == 0) break;
        }
        if (writer == size) complain("epoch %u: a mixture of what ranks wrote", epoch);
        int first = writer;
        MPI_Bcast(&first, 1, MPI_INT, 0, MPI_COMM_WORLD);
        if (first != writer) complain("epoch %u: rank 0 reads what rank %d wrote, this one what %d did", epoch, first, writer);
        barrier();
    }
    for (unsigned writer = 0; writer < (unsigned)size; writer++) {
        void *mine = put(20, writer, 0, EACH);
        if (mine) DO(MPI_File_write_at(file, 0, mine, EACH, MPI_BYTE, MPI_STATUS_IGNORE));
        barrier();
        check_here(file);
        barrier();
    }
    free(bytes);
    free(should);
    finish(&file, part);
}

/* One after the other, so that the order is known; and in the order of ranks. */
static void shared_pointer(void) {
    MPI_File file = new_file(part);
    uint64_t at = 0;
    for (unsigned epoch = 1; epoch <= 3; epoch++)
        for (unsigned writer = 0; writer < (unsigned)size; writer++, at += RECORD) {
            void *bytes = put(epoch, writer, at, RECORD);
            if (bytes) DO(MPI_File_write_shared(file, bytes, RECORD, MPI_BYTE, MPI_STATUS_IGNORE));
            barrier();
        }
    for (unsigned epoch = 4; epoch <= 6; epoch++) {
        void *mine = NULL, *bytes;
        for (unsigned writer = 0; writer < (unsigned)size; writer++, at += RECORD)
            if ((bytes = put(epoch, writer, at, RECORD))) mine = bytes;
        DO(MPI_File_write_ordered(file, mine, RECORD, MPI_BYTE, MPI_STATUS_IGNORE));
    }
    meet(file);
    MPI_Offset position = -1;
    DO(MPI_File_get_position_shared(file, &position));
    if ((uint64_t)position != at) complain("the shared pointer is %lld, should be %llu", (long long)position, (unsigned long long)at);
    check_here(file);
    barrier();
    DO(MPI_File_seek_shared(file, 100, MPI_SEEK_SET));
    unsigned char bytes[RECORD];
    DO(MPI_File_read_ordered(file, bytes, RECORD, MPI_BYTE, MPI_STATUS_IGNORE));
    compare("read_ordered", bytes, 100 + (uint64_t)rank * RECORD, RECORD);
    finish(&file, part);
}

/* All at once: the order is anybody's, but each record is there, once and whole. Rank 0 then sorts the file. */
static void shared_race(void) {
    enum { EACH = 20 };
    MPI_File file = new_file(part);
    unsigned char bytes[RECORD], should[RECORD];
    for (unsigned epoch = 1; epoch <= EACH; epoch++) {
        fill(bytes, epoch, (unsigned)rank, 0, RECORD);
        DO(MPI_File_write_shared(file, bytes, RECORD, MPI_BYTE, MPI_STATUS_IGNORE));
    }
    for (unsigned writer = 0; writer < (unsigned)size; writer++)
        for (unsigned epoch = 1; epoch <= EACH; epoch++) expect(epoch, writer, model_size, RECORD);
    meet(file);
    SIZE(file);
    int *seen = calloc((size_t)(size * EACH), sizeof *seen);
    for (int place = 0; place < size * EACH; place++) {
        DO(MPI_File_read_at(file, (MPI_Offset)place * RECORD, bytes, RECORD, MPI_BYTE, MPI_STATUS_IGNORE));
        int found = 0;
        for (int which = 0; which < size * EACH && !found; which++) {
            fill(should, (unsigned)(which % EACH) + 1, (unsigned)(which / EACH), 0, RECORD);
            if ((found = memcmp(bytes, should, RECORD) == 0) && seen[which]++) complain("record %d twice", which);
        }
        if (!found) complain("no record of ours at place %d", place);
    }
    free(seen);
    barrier();
    if (rank == 0) DO(MPI_File_write_at(file, 0, model, (int)model_size, MPI_BYTE, MPI_STATUS_IGNORE));
    finish(&file, part);
}

static void individual_pointer(void) {
    MPI_File file = new_file(part);
    MPI_Offset start = (MPI_Offset)rank * 4 * RECORD, position;
    DO(MPI_File_seek(file, start, MPI_SEEK_SET));
    for (unsigned epoch = 1; epoch <= 4; epoch++)
        for (unsigned writer = 0; writer < (unsigned)size; writer++) {
            void *bytes = put(epoch, writer, (uint64_t)(writer * 4 + epoch - 1) * RECORD, RECORD);
            if (!bytes) continue;
            if (epoch % 2) DO(MPI_File_write(file, bytes, RECORD, MPI_BYTE, MPI_STATUS_IGNORE));
            else DO(MPI_File_write_all(file, bytes, RECORD, MPI_BYTE, MPI_STATUS_IGNORE));
        }
    DO(MPI_File_get_position(file, &position));
    if (position != start + 4 * RECORD) complain("the pointer is %lld", (long long)position);
    meet(file);
    DO(MPI_File_seek(file, -RECORD, MPI_SEEK_END));
    unsigned char bytes[RECORD];
    DO(MPI_File_read(file, bytes, RECORD, MPI_BYTE, MPI_STATUS_IGNORE));
    compare("from the end", bytes, model_size - RECORD, RECORD);
    check_here(file);
    finish(&file, part);
}

/* Several calls under way; their buffers are told apart by their content. */
static void nonblocking(void) {
    enum { CALLS = 12, LENGTH = 30000 };
    MPI_File file = new_file(part);
    unsigned char *bytes = malloc((size_t)CALLS * LENGTH);
    MPI_Request requests[CALLS];
    MPI_Status statuses[CALLS];
    for (unsigned epoch = 1; epoch <= 3; epoch++) {
        for (unsigned call = 0; call < CALLS; call++)
            for (unsigned writer = 0; writer < (unsigned)size; writer++) {
                uint64_t at = (uint64_t)(call * (unsigned)size + writer) * LENGTH;
                expect(epoch, writer, at, LENGTH);
                if ((int)writer != rank) continue;
                unsigned char *from = bytes + call * LENGTH;
                fill(from, epoch, writer, at, LENGTH);
                /* The third epoch by the individual pointer. */
                if (epoch < 3) DO(MPI_File_iwrite_at(file, (MPI_Offset)at, from, LENGTH, MPI_BYTE, &requests[call]));
                else DO(MPI_File_seek(file, (MPI_Offset)at, MPI_SEEK_SET)), DO(MPI_File_iwrite(file, from, LENGTH, MPI_BYTE, &requests[call]));
            }
        DO(MPI_Waitall(CALLS, requests, statuses));
        for (int call = 0; call < CALLS; call++) COUNT(&statuses[call], LENGTH);
        meet(file);
        memset(bytes, 0, (size_t)CALLS * LENGTH);
        for (int call = 0; call < CALLS; call++)
            DO(MPI_File_iread_at(file, (MPI_Offset)(call * size + (rank + 1) % size) * LENGTH, bytes + call * LENGTH, LENGTH, MPI_BYTE, &requests[call]));
        DO(MPI_Waitall(CALLS, requests, statuses));
        for (int call = 0; call < CALLS; call++)
            compare("iread_at", bytes + call * LENGTH, (uint64_t)(call * size + (rank + 1) % size) * LENGTH, LENGTH);
        barrier();
    }
    free(bytes);
    finish(&file, part);
}

static void nonblocking_collective(void) {
    MPI_File file = new_file(part);
    unsigned char mine[2][RECORD];
    for (unsigned epoch = 1; epoch <= 4; epoch++) {
        for (unsigned writer = 0; writer < (unsigned)size; writer++) expect(epoch, writer, model_size, RECORD);
        uint64_t at = (uint64_t)((epoch - 1) * (unsigned)size + (unsigned)rank) * RECORD;
        unsigned char *bytes = mine[epoch % 2];
        fill(bytes, epoch, (unsigned)rank, at, RECORD);
        MPI_Request request;
        DO(MPI_File_iwrite_at_all(file, (MPI_Offset)at, bytes, RECORD, MPI_BYTE, &request));
        DO(MPI_Wait(&request, MPI_STATUS_IGNORE));
    }
    meet(file);
    check_here(file);
    finish(&file, part);
}

/* Every split write; between begin and end the program computes, and asks nothing of the file. */
static void split(void) {
    MPI_File file = new_file(part);
    unsigned char mine[RECORD];
    MPI_Status status;
    for (unsigned epoch = 1; epoch <= 9; epoch++) {
        for (unsigned writer = 0; writer < (unsigned)size; writer++) expect(epoch, writer, model_size, RECORD);
        MPI_Offset start = (MPI_Offset)((epoch - 1) * (unsigned)size) * RECORD, at = start + (MPI_Offset)rank * RECORD;
        fill(mine, epoch, (unsigned)rank, (uint64_t)at, RECORD);
        switch (epoch % 3) {
        case 1:
            DO(MPI_File_write_at_all_begin(file, at, mine, RECORD, MPI_BYTE));
            DO(MPI_File_write_at_all_end(file, mine, &status));
            break;
        case 2:
            DO(MPI_File_seek(file, at, MPI_SEEK_SET));
            DO(MPI_File_write_all_begin(file, mine, RECORD, MPI_BYTE));
            DO(MPI_File_write_all_end(file, mine, &status));
            break;
        default:
            DO(MPI_File_seek_shared(file, start, MPI_SEEK_SET));
            DO(MPI_File_write_ordered_begin(file, mine, RECORD, MPI_BYTE));
            DO(MPI_File_write_ordered_end(file, mine, &status));
        }
        COUNT(&status, RECORD);
    }
    meet(file);
    check_here(file);
    DO(MPI_File_read_at_all_begin(file, (MPI_Offset)((rank + 1) % size) * RECORD, mine, RECORD, MPI_BYTE));
    DO(MPI_File_read_at_all_end(file, mine, &status));
    compare("read_at_all_begin", mine, (uint64_t)((rank + 1) % size) * RECORD, RECORD);
    finish(&file, part);
}

/* Opened for appending: the pointers begin at the end. */
static void appending(void) {
    model_resize(0);
    for (unsigned epoch = 1; epoch <= 3; epoch++) {
        MPI_File file = open_file(part, MPI_MODE_CREATE | MPI_MODE_WRONLY | MPI_MODE_APPEND);
        MPI_Offset position = -1;
        DO(MPI_File_get_position(file, &position));
        if ((size_t)position != model_size) complain("the pointer begins at %lld, should be %zu", (long long)position, model_size);
        void *mine = NULL, *bytes;
        for (unsigned writer = 0; writer < (unsigned)size; writer++)
            if ((bytes = put(epoch, writer, model_size, RECORD))) mine = bytes;
        DO(MPI_File_write_ordered(file, mine, RECORD, MPI_BYTE, MPI_STATUS_IGNORE));
        finish(&file, part);
    }
}

/* Epochs as a simulation has them: write, sync; what was synced is every rank's by MPI's recipe. */
static void syncs(void) {
    MPI_File file = new_file(part);
    for (unsigned epoch = 1; epoch <= 8; epoch++) {
        for (unsigned writer = 0; writer < (unsigned)size; writer++) {
            write_record(file, epoch, writer, writer * RECORD);
            /* Not every rank writes in every epoch; all sync. */
            if ((writer + epoch) % 2) write_record(file, epoch, writer, (uint64_t)(epoch * (unsigned)size + writer) * RECORD);
        }
        meet(file);
        check_here(file);
        barrier();
    }
    finish(&file, part);
}

/* A file of each rank's own, and one that only some ranks have. */
static void groups(void) {
    char name[32];
    snprintf(name, sizeof name, "groups.%d", rank);
    model_resize(0);
    MPI_File file;
    DO(MPI_File_open(MPI_COMM_SELF, path_of(name), MPI_MODE_CREATE | MPI_MODE_RDWR, MPI_INFO_NULL, &file));
    for (unsigned epoch = 1; epoch <= 3; epoch++) {
        write_record(file, epoch, (unsigned)rank, (uint64_t)epoch * RECORD);
        DO(MPI_File_sync(file));
        check_here(file);
    }
    DO(MPI_File_close(&file));
    check_path(name);
    barrier();
    MPI_Comm half;
    MPI_Comm_split(MPI_COMM_WORLD, rank % 2, rank, &half);
    snprintf(name, sizeof name, "groups.half%d", rank % 2);
    model_resize(0);
    DO(MPI_File_open(half, path_of(name), MPI_MODE_CREATE | MPI_MODE_RDWR, MPI_INFO_NULL, &file));
    for (unsigned writer = (unsigned)rank % 2; writer < (unsigned)size; writer += 2) write_record(file, 1, writer, writer * RECORD);
    DO(MPI_File_sync(file));
    MPI_Barrier(half);
    DO(MPI_File_sync(file));
    check_here(file);
    DO(MPI_File_close(&file));
    MPI_Barrier(half);
    check_path(name);
    MPI_Comm_free(&half);
}

static const struct part parts[] = {
    {"sizes", sizes}, {"preallocate", preallocate}, {"own-size", own_size}, {"deletion", deletion},
    {"renamed", renamed}, {"atomic", atomic}, {"shared-pointer", shared_pointer}, {"shared-race", shared_race},
    {"individual-pointer", individual_pointer}, {"nonblocking", nonblocking},
    {"nonblocking-collective", nonblocking_collective}, {"split", split}, {"appending", appending},
    {"syncs", syncs}, {"groups", groups}, {NULL, NULL},
};

int main(int argc, char **argv) { return perform(argc, argv, parts); }
