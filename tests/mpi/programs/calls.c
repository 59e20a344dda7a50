/* What MPI-IO does beside independent calls through a view, mixed with them on the same files: shared and
 * ordered pointers, split and nonblocking calls, sizes, atomic mode, several handles, odd datatypes, errors.
 *
 * usage: calls DIRECTORY [KEY=VALUE …]   (hints for MPI_File_open)
 *
 * See told.h. Sections and kinds of views named in the environment variable PROBE_WITHOUT are
 * left out. */
#include "told.h"

#include <sys/wait.h>

static void meet(MPI_File file) {
    MPI_File_sync(file);
    MPI_Barrier(MPI_COMM_WORLD);
    MPI_File_sync(file);
}

/* Every rank its blocks of ints in turn; the extent covers all ranks. */
static MPI_Datatype turns(int blocks, int length) {
    MPI_Datatype type;
    MPI_Type_vector(blocks, length, length * size, MPI_INT, &type);
    type = resized(type, (MPI_Aint)blocks * length * size * 4);
    MPI_Type_commit(&type);
    return type;
}

static void tell_buffer(size_t length) { TELL("  buffer: %016llx\n", (unsigned long long)sum_of(buffer, length)); }

static MPI_File strided_file(const char *name, MPI_Datatype type, int block) {
    make_file(name, FILLED);
    MPI_File file = open_file(name, MPI_MODE_RDWR);
    TELL("  set_view: class %d\n", class_of(MPI_File_set_view(file, 4 * block * rank, MPI_INT, type, "native", hints)));
    return file;
}

/* Holes in the file, in memory, in both, and independent calls of every kind on each. */
static void noncontiguous(void) {
    for (int kind = 0; kind < 3; kind++) {
        static const char *names[] = {"holes in the file", "holes in memory", "holes in both"};
        TELL("%s\n", names[kind]);
        MPI_Datatype filetype = turns(25, 2), memory;
        MPI_Type_vector(30, 3, 7, MPI_INT, &memory);
        MPI_Type_commit(&memory);
        char name[32];
        sprintf(name, "holes%d", kind);
        make_file(name, FILLED);
        MPI_File file = open_file(name, MPI_MODE_RDWR);
        if (kind == 1) MPI_File_set_view(file, 8192 * rank, MPI_INT, MPI_INT, "native", hints);
        else MPI_File_set_view(file, 8 * rank, MPI_INT, filetype, "native", hints);
        MPI_Datatype type = kind == 0 ? MPI_INT : memory;
        int count = kind == 0 ? 90 : 1;
        MPI_Status status;
        fill(20 + kind);
        tell_call("write", MPI_File_write(file, buffer, count, type, &status), file, &status, type);
        tell_call("write_at", MPI_File_write_at(file, 200, buffer + 8, count, type, &status), file, &status, type);
        MPI_Request request;
        MPI_File_iwrite(file, buffer + 16, count, type, &request);
        MPI_Wait(&request, &status);
        tell_call("iwrite", MPI_SUCCESS, file, &status, type);
        meet(file);
        memset(buffer, 0, sizeof buffer);
        MPI_File_iread_at(file, 40, buffer, count, type, &request);
        MPI_Wait(&request, &status);
        tell_call("iread_at", MPI_SUCCESS, file, &status, type);
        tell_call("read_at", MPI_File_read_at(file, 130, buffer + 4096, count, type, &status), file, &status, type);
        go_to(file, 15);
        tell_call("read", MPI_File_read(file, buffer + 8192, count, type, &status), file, &status, type);
        tell_buffer(16384);
        MPI_File_close(&file);
        tell_file(name);
        MPI_Type_free(&memory);
        MPI_Type_free(&filetype);
    }
}

/* One after the other, so that the order is known. */
static void shared_pointer(void) {
    TELL("shared pointer\n");
    MPI_Datatype type = turns(20, 1);
    make_file("shared", FILLED);
    MPI_File file = open_file("shared", MPI_MODE_RDWR);
    /* All ranks must have one view for a shared pointer (MPI-4.1 §14.4.4). */
    MPI_File_set_view(file, 0, MPI_INT, type, "native", hints);
    MPI_Status status;
    MPI_Offset position = -7;
    fill(30);
    for (int turn = 0; turn < 2 * size; turn++) {
        if (turn % size == rank)
            tell_call("write_shared", MPI_File_write_shared(file, buffer, 7, MPI_INT, &status), file, &status, MPI_INT);
        MPI_Barrier(MPI_COMM_WORLD);
    }
    MPI_File_get_position_shared(file, &position);
    TELL("  shared position: %lld\n", (long long)position);
    MPI_Barrier(MPI_COMM_WORLD);
    if (rank == 0) tell_call("write_at", MPI_File_write_at(file, 60, buffer, 11, MPI_INT, &status), file, &status, MPI_INT);
    meet(file);
    tell_call("write_ordered", MPI_File_write_ordered(file, buffer + 100, 5 + rank, MPI_INT, &status), file, &status, MPI_INT);
    meet(file);
    go_to_shared(file, 3);
    tell_call("read_ordered", MPI_File_read_ordered(file, buffer, 9, MPI_INT, &status), file, &status, MPI_INT);
    tell_buffer(4096);
    tell_call("read_at", MPI_File_read_at(file, 0, buffer + 512, 60, MPI_INT, &status), file, &status, MPI_INT);
    tell_buffer(4096);
    MPI_File_close(&file);
    tell_file("shared");
    MPI_Type_free(&type);
}

/* Between the halves of a split call nothing else may use the file (MPI-4.1 §14.4.5); before and after, it may. */
static void split(void) {
    TELL("split\n");
    MPI_Datatype type = turns(30, 2);
    MPI_File file = strided_file("split", type, 2);
    MPI_Status status;
    fill(31);
    tell_call("write_at", MPI_File_write_at(file, 5, buffer, 20, MPI_INT, &status), file, &status, MPI_INT);
    meet(file);
    MPI_File_write_all_begin(file, buffer, 33, MPI_INT);
    MPI_File_write_all_end(file, buffer, &status);
    tell_call("write_all_end", MPI_SUCCESS, file, &status, MPI_INT);
    MPI_File_write_at_all_begin(file, 70, buffer + 64, 17, MPI_INT);
    MPI_File_write_at_all_end(file, buffer + 64, &status);
    tell_call("write_at_all_end", MPI_SUCCESS, file, &status, MPI_INT);
    meet(file);
    tell_call("write", MPI_File_write(file, buffer + 32, 12, MPI_INT, &status), file, &status, MPI_INT);
    meet(file);
    fill(32);
    MPI_File_read_at_all_begin(file, 2, buffer, 50, MPI_INT);
    MPI_File_read_at_all_end(file, buffer, &status);
    tell_call("read_at_all_end", MPI_SUCCESS, file, &status, MPI_INT);
    go_to(file, 11);
    MPI_File_read_all_begin(file, buffer + 1024, 40, MPI_INT);
    MPI_File_read_all_end(file, buffer + 1024, &status);
    tell_call("read_all_end", MPI_SUCCESS, file, &status, MPI_INT);
    tell_call("read", MPI_File_read(file, buffer + 2048, 40, MPI_INT, &status), file, &status, MPI_INT);
    tell_buffer(4096);
    MPI_File_close(&file);
    tell_file("split");
    MPI_Type_free(&type);
}

static void tell_size(MPI_File file) {
    MPI_Offset length = -7;
    MPI_File_get_size(file, &length);
    TELL("  size: %lld\n", (long long)length);
    MPI_Barrier(MPI_COMM_WORLD);
}

/* What one rank sees of sizes that others changed is said of synchronised files alone (MPI-4.1 §14.6.1). */
static void sizes(void) {
    TELL("sizes\n");
    MPI_Datatype type = turns(10, 3);
    MPI_File file = strided_file("sizes", type, 3);
    MPI_Status status;
    fill(33);
    TELL("  set_size: %d\n", class_of(MPI_File_set_size(file, 5000)));
    meet(file);
    tell_size(file);
    tell_call("write_at", MPI_File_write_at(file, 25, buffer, 24, MPI_INT, &status), file, &status, MPI_INT);
    meet(file);
    TELL("  set_size: %d\n", class_of(MPI_File_set_size(file, 700)));
    meet(file);
    tell_size(file);
    TELL("  set_size: %d\n", class_of(MPI_File_set_size(file, 9000)));
    meet(file);
    memset(buffer, 1, 8192);
    tell_call("read_at", MPI_File_read_at(file, 0, buffer, 300, MPI_INT, &status), file, &status, MPI_INT);
    tell_buffer(8192);
    MPI_Offset byte = -7;
    MPI_File_get_byte_offset(file, 41, &byte);
    TELL("  byte offset: %lld\n", (long long)byte);
    MPI_File_seek(file, 9, MPI_SEEK_SET);
    MPI_File_get_position(file, &byte);
    MPI_File_get_byte_offset(file, byte, &byte);
    TELL("  byte offset: %lld\n", (long long)byte);
    TELL("  preallocate: %d\n", class_of(MPI_File_preallocate(file, 12000)));
    meet(file);
    tell_size(file);
    MPI_File_close(&file);
    tell_file("sizes");
    MPI_Type_free(&type);
}

/* In atomic mode what one rank has written the other sees whole, without a sync. */
static void atomic(void) {
    TELL("atomic\n");
    enum { INTS = 2000 };
    MPI_Datatype type;
    MPI_Type_vector(INTS, 1, 2, MPI_INT, &type);
    MPI_Type_commit(&type);
    make_file("atomic", FILLED);
    MPI_File file = open_file("atomic", MPI_MODE_RDWR);
    MPI_File_set_view(file, 0, MPI_INT, type, "native", hints);
    static int values[INTS];
    int torn = 0, flag = -7;
    for (int round = 0; round < 6; round++) {
        MPI_File_set_atomicity(file, round % 2 == 0);
        MPI_File_get_atomicity(file, &flag);
        if (round % 2 == 0) {
            for (int i = 0; i < INTS; i++) values[i] = 100 * round + rank;
            MPI_File_write_at(file, 0, values, INTS, MPI_INT, MPI_STATUS_IGNORE);
            MPI_Barrier(MPI_COMM_WORLD);
            MPI_File_read_at(file, 0, values, INTS, MPI_INT, MPI_STATUS_IGNORE);
            for (int i = 1; i < INTS; i++) torn += values[i] != values[0];
        } else {
            /* Not atomic: one rank alone. */
            for (int i = 0; i < INTS; i++) values[i] = 7 * i + round;
            if (rank == 0) MPI_File_write_at(file, 0, values, INTS, MPI_INT, MPI_STATUS_IGNORE);
            meet(file);
            MPI_File_read_at(file, 0, values, INTS, MPI_INT, MPI_STATUS_IGNORE);
            TELL("  values: %016llx\n", (unsigned long long)sum_of(values, sizeof values));
        }
        TELL("  atomicity: %d, torn: %d\n", flag, torn);
        MPI_Barrier(MPI_COMM_WORLD);
    }
    MPI_File_close(&file);
    tell_file("atomic");
    MPI_Type_free(&type);
}

/* Two handles of one file in one process, one through a view, one without. */
static void two_handles(void) {
    TELL("two handles\n");
    MPI_Datatype type = turns(16, 2);
    MPI_File file = strided_file("handles", type, 2), plain = open_file("handles", MPI_MODE_RDWR);
    MPI_Status status;
    fill(34);
    tell_call("write", MPI_File_write(file, buffer, 48, MPI_INT, &status), file, &status, MPI_INT);
    meet(file);
    meet(plain);
    tell_call("plain read", MPI_File_read_at(plain, 0, buffer + 1024, 800, MPI_BYTE, &status), plain, &status, MPI_BYTE);
    MPI_Barrier(MPI_COMM_WORLD);
    if (rank == 0)
        tell_call("plain write", MPI_File_write_at(plain, 100, buffer, 90, MPI_BYTE, &status), plain, &status, MPI_BYTE);
    meet(plain);
    meet(file);
    tell_call("read", MPI_File_read_at(file, 0, buffer + 2048, 60, MPI_INT, &status), file, &status, MPI_INT);
    tell_buffer(4096);
    MPI_File_close(&plain);
    tell_call("read", MPI_File_read_at(file, 7, buffer + 3000, 20, MPI_INT, &status), file, &status, MPI_INT);
    tell_buffer(4096);
    MPI_File_close(&file);
    tell_file("handles");
    MPI_Type_free(&type);
}

/* Views one after the other on one handle, calls between them; empty blocks and types without data. */
static void odd_types(void) {
    TELL("odd types\n");
    make_file("odd", FILLED);
    MPI_File file = open_file("odd", MPI_MODE_RDWR);
    MPI_Status status;
    const char *without = getenv("PROBE_WITHOUT");
    for (int kind = 0; kind < 4; kind++) {
        MPI_Datatype type;
        if (kind == 2 && without && strstr(without, "subarray")) continue;
        if (kind == 0) {
            int lengths[] = {0, 3, 0, 2, 0}, at[] = {0, 2, 6, 9, 30};
            MPI_Type_indexed(5, lengths, at, MPI_INT, &type);
            type = resized(type, 48 * size);
        } else if (kind == 1) {
            int lengths[] = {1, 0, 2};
            MPI_Aint at[] = {4, 8, 40};
            MPI_Datatype types[] = {MPI_INT, MPI_DOUBLE, MPI_INT};
            MPI_Type_create_struct(3, lengths, at, types, &type);
            type = resized(type, 64 * size);
        } else if (kind == 2) {
            MPI_Datatype inner;
            int sizes[] = {6, 5, 4}, part[] = {3, 2, 3}, from[] = {1, 2, 0};
            MPI_Type_create_subarray(3, sizes, part, from, MPI_ORDER_FORTRAN, MPI_INT, &inner);
            MPI_Type_contiguous(2, inner, &type);
            MPI_Type_free(&inner);
        } else {
            MPI_Aint at[] = {0, 12, 13 * 4, 20 * 4};
            MPI_Type_create_hindexed_block(4, 1, at, MPI_INT, &type);
        }
        MPI_Type_commit(&type);
        MPI_Offset start = kind < 2 ? (kind == 0 ? 48 : 64) * rank : 8000 * rank + 100;
        TELL("  view %d: class %d\n", kind, class_of(MPI_File_set_view(file, start, MPI_INT, type, "native", hints)));
        fill(40 + kind);
        tell_call("write", MPI_File_write(file, buffer, 61, MPI_INT, &status), file, &status, MPI_INT);
        tell_call("write nothing", MPI_File_write_at(file, 3, buffer, 0, MPI_INT, &status), file, &status, MPI_INT);
        meet(file);
        tell_call("read_at", MPI_File_read_at(file, 13, buffer, 70, MPI_INT, &status), file, &status, MPI_INT);
        tell_buffer(512);
        meet(file);
        MPI_Type_free(&type);
    }
    MPI_File_close(&file);
    tell_file("odd");
}

/* What is opened for appending begins at the end. */
static void appending(void) {
    TELL("appending\n");
    make_file("append", 1000);
    MPI_File file = open_file("append", MPI_MODE_RDWR | MPI_MODE_APPEND);
    MPI_Offset position = -7;
    MPI_File_get_position(file, &position);
    TELL("  position: %lld\n", (long long)position);
    MPI_Barrier(MPI_COMM_WORLD);
    MPI_Datatype type = turns(12, 1);
    MPI_File_set_view(file, 1000 + 4 * rank, MPI_INT, type, "native", hints);
    MPI_Status status;
    fill(45);
    /* The last of the file is wanted data of the last rank: nothing lies beyond the end but what was written. */
    tell_call("write", MPI_File_write(file, buffer, 24, MPI_INT, &status), file, &status, MPI_INT);
    meet(file);
    tell_call("read_at", MPI_File_read_at(file, 4, buffer + 512, 20, MPI_INT, &status), file, &status, MPI_INT);
    tell_buffer(1024);
    MPI_File_close(&file);
    tell_file("append");
    MPI_Type_free(&type);
}

/* A wish that goes away while the program holds a lock of its own on the file. */
static void own_locks(void) {
    TELL("own locks\n");
    if (rank == 0) {
        char path[4096];
        path_of(path, "locked");
        FILE *made = fopen(path, "w");
        for (int i = 0; i < 4096; i++) putc(i & 0xff, made);
        fclose(made);
        MPI_Info wish;
        MPI_Info_create(&wish);
        MPI_Info_set(wish, "sluice_sieve", "enable");
        MPI_File file;
        MPI_File_open(MPI_COMM_SELF, path, MPI_MODE_RDWR, wish, &file);
        int fd = open(path, O_RDWR);
        struct flock lock = {.l_type = F_WRLCK, .l_whence = SEEK_SET, .l_start = (off_t)1 << 40, .l_len = 1};
        TELL("  lock: %d\n", fcntl(fd, F_SETLK, &lock));
        MPI_Info_set(wish, "sluice_sieve", "disable");
        MPI_File_set_info(file, wish);
        /* Another process asks. */
        int asked[2];
        char held = '?';
        if (pipe(asked)) perror("pipe");
        pid_t child = fork();
        if (child == 0) {
            struct flock wanted = {.l_type = F_WRLCK, .l_whence = SEEK_SET, .l_start = (off_t)1 << 40, .l_len = 1};
            char answer = fcntl(fd, F_GETLK, &wanted) ? 'E' : wanted.l_type == F_UNLCK ? 'n' : 'y';
            _exit(write(asked[1], &answer, 1) != 1);
        }
        int status;
        waitpid(child, &status, 0);
        if (read(asked[0], &held, 1) != 1) held = '!';
        TELL("  still held: %c\n", held);
        close(asked[0]);
        close(asked[1]);
        MPI_File_close(&file);
        close(fd);
        MPI_Info_free(&wish);
    }
    MPI_Barrier(MPI_COMM_WORLD);
}

/* What is wrong is refused as the library refuses it, and leaves files as they were. */
static void refusals(void) {
    TELL("refusals\n");
    make_file("refusals", 3000);
    char path[4096];
    MPI_Status status;
    MPI_File file;
    MPI_Datatype type = turns(10, 1);
    open_file("refusals", MPI_MODE_RDWR | MPI_MODE_CREATE | MPI_MODE_EXCL);
    open_file("none", MPI_MODE_RDONLY);
    open_file("refusals", MPI_MODE_RDWR | MPI_MODE_RDONLY);
    path_of(path, "none");
    TELL("  delete: %d\n", class_of(MPI_File_delete(path, MPI_INFO_NULL)));
    MPI_Barrier(MPI_COMM_WORLD);

    file = open_file("refusals", MPI_MODE_RDONLY);
    MPI_File_set_view(file, 4 * rank, MPI_INT, type, "native", hints);
    fill(50);
    TELL("  write: %d\n", class_of(MPI_File_write(file, buffer, 20, MPI_INT, &status)));
    TELL("  set_view without a type: %d\n",
         class_of(MPI_File_set_view(file, 0, MPI_INT, MPI_DATATYPE_NULL, "native", MPI_INFO_NULL)));
    TELL("  set_view of half a type: %d\n",
         class_of(MPI_File_set_view(file, 0, MPI_DOUBLE, type, "native", MPI_INFO_NULL)));
    TELL("  no such representation: %d\n",
         class_of(MPI_File_set_view(file, 0, MPI_INT, type, "absent", MPI_INFO_NULL)));
    MPI_File_set_view(file, 4 * rank, MPI_INT, type, "native", hints);
    tell_call("read_at", MPI_File_read_at(file, 2, buffer, 40, MPI_INT, &status), file, &status, MPI_INT);
    tell_buffer(160);
    MPI_File_close(&file);

    file = open_file("refusals", MPI_MODE_WRONLY);
    MPI_File_set_view(file, 4 * rank, MPI_INT, type, "native", hints);
    TELL("  read: %d\n", class_of(MPI_File_read(file, buffer, 20, MPI_INT, &status)));
    tell_call("write", MPI_File_write(file, buffer, 20, MPI_INT, &status), file, &status, MPI_INT);
    MPI_File_close(&file);
    tell_file("refusals");
    if (rank == 0) {
        path_of(path, "refusals");
        TELL("  delete: %d\n", class_of(MPI_File_delete(path, MPI_INFO_NULL)));
        TELL("  gone: %d\n", access(path, F_OK) == 0 ? 0 : errno);
    }
    MPI_Barrier(MPI_COMM_WORLD);
    MPI_Type_free(&type);
}

int main(int argc, char **argv) {
    static const struct {
        const char *name;
        void (*run)(void);
    } sections[] = {
        {"noncontiguous", noncontiguous}, {"shared", shared_pointer}, {"split", split}, {"sizes", sizes},
        {"atomic", atomic}, {"handles", two_handles}, {"odd", odd_types}, {"appending", appending},
        {"locks", own_locks}, {"refusals", refusals},
    };
    begin(&argc, &argv);
    const char *without = getenv("PROBE_WITHOUT");
    for (size_t i = 0; i < sizeof sections / sizeof *sections; i++)
        if (!without || !strstr(without, sections[i].name)) sections[i].run();
    end();
    return 0;
}
