/* What a program that compares two runs tells: each rank writes what it sees to DIRECTORY/told.RANK:
 * return codes, statuses, file pointers, sums of what was read. Rank 0 adds sums of the files' whole
 * content. Files are filled beforehand, so that a byte between the wanted ones that changes is noticed. */
#include <errno.h>
#include <fcntl.h>
#include <mpi.h>
#include <stdint.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

static int rank, size;
static const char *directory;
static FILE *told;
static MPI_Info hints = MPI_INFO_NULL;

#define FILLED 65536
#define TELL(...) (fprintf(told, __VA_ARGS__), fflush(told))

static uint64_t sum_of(const void *data, size_t length) {
    const unsigned char *bytes = data;
    uint64_t sum = 1469598103934665603u;
    for (size_t i = 0; i < length; i++) sum = (sum ^ bytes[i]) * 1099511628211u;
    return sum;
}

static int class_of(int code) {
    int class = 0;
    /* Open MPI returns some codes that it does not know itself. */
    if (code != MPI_SUCCESS && MPI_Error_class(code, &class) != MPI_SUCCESS) class = -1;
    return class;
}

static void path_of(char *path, const char *name) { sprintf(path, "%s/%s", directory, name); }

/* A file with a known content, made by rank 0 while the others wait. */
static void make_file(const char *name, size_t length) {
    if (rank == 0) {
        char path[4096];
        path_of(path, name);
        unlink(path);
        FILE *file = fopen(path, "w");
        for (size_t i = 0; i < length; i++) putc((int)(i * 7 + i / 251) & 0xff, file);
        fclose(file);
    }
    MPI_Barrier(MPI_COMM_WORLD);
}

static void tell_file(const char *name) {
    MPI_Barrier(MPI_COMM_WORLD);
    if (rank == 0) {
        char path[4096];
        path_of(path, name);
        static unsigned char content[4 * FILLED];
        int fd = open(path, O_RDONLY);
        ssize_t length = fd < 0 ? -1 : read(fd, content, sizeof content);
        TELL("  file: %zd bytes, sum %016llx\n", length,
             (unsigned long long)sum_of(content, length > 0 ? (size_t)length : 0));
        close(fd);
    }
    MPI_Barrier(MPI_COMM_WORLD);
}

static void tell_call(const char *call, int code, MPI_File file, MPI_Status *status, MPI_Datatype type) {
    int count = -7, bytes = -7;
    MPI_Offset position = -7;
    if (code == MPI_SUCCESS) {
        MPI_Get_count(status, type, &count);
        MPI_Get_elements(status, MPI_BYTE, &bytes);
    }
    MPI_File_get_position(file, &position);
    TELL("  %s: class %d, count %d, bytes %d, position %lld\n", call, class_of(code), count, bytes,
         (long long)position);
}

static MPI_File open_file(const char *name, int mode) {
    char path[4096];
    path_of(path, name);
    MPI_File file;
    int code = MPI_File_open(MPI_COMM_WORLD, path, mode, hints, &file);
    TELL("  open: class %d\n", class_of(code));
    return code == MPI_SUCCESS ? file : MPI_FILE_NULL;
}

/* Seeks, and makes sure: with its library for the standard interface Intel MPI 2021.18 takes
 * MPI_SEEK_SET for MPI_SEEK_END and MPI_SEEK_CUR for MPI_SEEK_SET. */
static void go_to(MPI_File file, MPI_Offset position) {
    MPI_Offset now = -7;
    MPI_File_seek(file, position, MPI_SEEK_SET);
    MPI_File_get_position(file, &now);
    if (now != position) MPI_File_seek(file, position, MPI_SEEK_CUR);
}

/* The same with the shared pointer, by all ranks. Wherever it leads to beyond the end of the file, ROMIO says that it
 * has read and leaves in the buffer what it had in its own: that differs from run to run. */
static void go_to_shared(MPI_File file, MPI_Offset position) {
    MPI_Offset now = -7;
    MPI_File_seek_shared(file, position, MPI_SEEK_SET);
    MPI_File_get_position_shared(file, &now);
    MPI_Barrier(MPI_COMM_WORLD);
    if (now != position) MPI_File_seek_shared(file, position, MPI_SEEK_CUR);
}

static MPI_Datatype resized(MPI_Datatype type, MPI_Aint extent) {
    MPI_Datatype made;
    MPI_Type_create_resized(type, 0, extent, &made);
    MPI_Type_free(&type);
    return made;
}

static unsigned char buffer[1 << 17];

static void fill(int seed) {
    for (size_t i = 0; i < sizeof buffer; i++) buffer[i] = (unsigned char)(i * 13 + seed * 41 + rank * 101 + i / 256);
}

/* argv: DIRECTORY [KEY=VALUE …] */
static void begin(int *argc, char ***argv) {
    MPI_Init(argc, argv);
    MPI_Comm_rank(MPI_COMM_WORLD, &rank);
    MPI_Comm_size(MPI_COMM_WORLD, &size);
    MPI_Comm_set_errhandler(MPI_COMM_WORLD, MPI_ERRORS_RETURN);
    directory = (*argv)[1];
    char path[4096];
    sprintf(path, "%s/told.%d", directory, rank);
    told = fopen(path, "w");
    if (!told) {
        perror(path);
        MPI_Abort(MPI_COMM_WORLD, 2);
    }
    if (*argc > 2) {
        MPI_Info_create(&hints);
        for (int i = 2; i < *argc; i++) {
            char *value = strchr((*argv)[i], '=');
            *value++ = 0;
            MPI_Info_set(hints, (*argv)[i], value);
        }
    }
}

static void end(void) {
    TELL("done\n");
    fclose(told);
    MPI_Finalize();
}
