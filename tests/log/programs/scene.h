/* What the MPI programs share: a model of the file, to which every rank adds what all ranks write, and the
 * comparison of the real file with it.
 *
 * usage of each: PROGRAM SIDE DIRECTORY PART…
 *
 * The files are made in DIRECTORY. Each rank tells what it saw (sizes, classes of errors) in SIDE/told.RANK, and
 * there and on standard error what is WRONG; the exit status is then 3. */
#include <errno.h>
#include <fcntl.h>
#include <mpi.h>
#include <stdarg.h>
#include <stdlib.h>
#include <sys/stat.h>
#include <unistd.h>

#include "content.h"

/* Not every program needs everything. */
#pragma GCC diagnostic ignored "-Wunused-function"

static int rank, size, wrong, failed;
static const char *side, *directory, *part;
static FILE *told;

static void tell(const char *format, ...) {
    va_list arguments;
    va_start(arguments, format);
    fprintf(told, "%s: ", part);
    vfprintf(told, format, arguments);
    fputc('\n', told);
    fflush(told);
    va_end(arguments);
}

__attribute__((format(printf, 1, 2))) static void complain(const char *format, ...) {
    char text[512];
    va_list arguments;
    va_start(arguments, format);
    vsnprintf(text, sizeof text, format, arguments);
    va_end(arguments);
    if (++wrong <= 12) {
        fprintf(told, "%s: WRONG: %s\n", part, text);
        fflush(told);
        fprintf(stderr, "%s: rank %d of %d: WRONG: %s\n", part, rank, size, text);
    }
}

static int class_of(int code) {
    int class = 0;
    /* Open MPI returns some codes that it does not know itself. */
    if (code != MPI_SUCCESS && MPI_Error_class(code, &class) != MPI_SUCCESS) class = -1;
    return class;
}

/* A call that must succeed. */
#define DO(call) done(call, #call, __LINE__)
static void done(int code, const char *call, int line) {
    if (code == MPI_SUCCESS) return;
    char text[MPI_MAX_ERROR_STRING] = "";
    int length;
    MPI_Error_string(code, text, &length);
    complain("line %d: %.120s: %s (errno %d)", line, call, text, errno);
}

static void count_is(MPI_Status *status, int wanted, int line) {
    int count = -1;
    MPI_Get_count(status, MPI_BYTE, &count);
    if (count != wanted) complain("line %d: %d bytes instead of %d", line, count, wanted);
}
#define COUNT(status, wanted) count_is(status, wanted, __LINE__)

static const char *path_of(const char *name) {
    static char path[4][4096];
    static int next;
    char *into = path[next++ % 4];
    snprintf(into, sizeof path[0], "%s/%s", directory, name);
    return into;
}

/* ---- the model ------------------------------------------------------------------------------ */

static unsigned char *model;
static size_t model_size, model_room;

static void model_resize(size_t length) {
    if (length > model_room) {
        model_room = 2 * length;
        model = realloc(model, model_room);
    }
    if (length > model_size) memset(model + model_size, 0, length - model_size);
    model_size = length;
}

/* Some rank writes here; every rank notes it. */
static void expect(unsigned epoch, unsigned writer, uint64_t offset, size_t length) {
    if (length == 0) return;
    if (offset + length > model_size) model_resize(offset + length);
    fill(model + offset, epoch, writer, offset, length);
}

/* The same, and this rank does it if it is the writer. The buffer lasts until the next call. */
static void *put(unsigned epoch, unsigned writer, uint64_t offset, size_t length) {
    static unsigned char *buffer;
    expect(epoch, writer, offset, length);
    if ((int)writer != rank) return NULL;
    buffer = realloc(buffer, length + 1);
    fill(buffer, epoch, writer, offset, length);
    return buffer;
}

static void compare(const char *what, const unsigned char *content, uint64_t offset, size_t length) {
    if (memcmp(content, model + offset, length) == 0) return;
    size_t first = 0, number = 0;
    for (size_t i = length; i-- > 0;)
        if (content[i] != model[offset + i]) first = i, number++;
    char is[96], should[96];
    /* `origin` wants whole words of the file. */
    unsigned char *shifted = calloc(offset + length + 8, 1);
    memcpy(shifted + offset, content, length);
    complain("%s: %zu of %zu bytes differ, the first at %llu: %s, should be %s", what, number, length,
             (unsigned long long)(offset + first), origin(is, shifted, offset + first, offset + length),
             origin(should, model, offset + first, model_size));
    free(shifted);
}

/* ---- files ---------------------------------------------------------------------------------- */

static MPI_Info hints = MPI_INFO_NULL;

static MPI_File open_file(const char *name, int mode) {
    MPI_File file = MPI_FILE_NULL;
    DO(MPI_File_open(MPI_COMM_WORLD, path_of(name), mode, hints, &file));
    return file;
}

/* A new file, and an empty model. */
static MPI_File new_file(const char *name) {
    model_resize(0);
    return open_file(name, MPI_MODE_CREATE | MPI_MODE_RDWR);
}

/* The file is full of what rank 0 writes in epoch 0, so that a byte between wanted ones that changes is noticed. */
static MPI_File filled_file(const char *name, size_t length) {
    model_resize(0);
    void *bytes = put(0, 0, 0, length);
    if (rank == 0) {
        FILE *out = fopen(path_of(name), "w");
        if (out == NULL || fwrite(bytes, 1, length, out) != length || fclose(out) != 0)
            complain("filling %s: %s", name, strerror(errno));
    }
    MPI_Barrier(MPI_COMM_WORLD);
    return open_file(name, MPI_MODE_RDWR);
}

static void barrier(void) { MPI_Barrier(MPI_COMM_WORLD); }

/* MPI's recipe for making all writes visible to all: sync, barrier, sync. */
static void meet(MPI_File file) {
    DO(MPI_File_sync(file));
    barrier();
    DO(MPI_File_sync(file));
}

static void view_bytes(MPI_File file) { DO(MPI_File_set_view(file, 0, MPI_BYTE, MPI_BYTE, "native", MPI_INFO_NULL)); }

static void size_is(MPI_File file, uint64_t wanted, int line) {
    MPI_Offset length = -1;
    DO(MPI_File_get_size(file, &length));
    if ((uint64_t)length != wanted)
        complain("line %d: MPI_File_get_size says %lld, should be %llu", line, (long long)length, (unsigned long long)wanted);
}
#define SIZE(file) size_is(file, model_size, __LINE__)

/* What the handle shows, on every rank. */
static void check_here(MPI_File file) {
    SIZE(file);
    unsigned char *content = calloc(model_size + 1, 1);
    MPI_Status status;
    DO(MPI_File_read_at(file, 0, content, (int)model_size, MPI_BYTE, &status));
    COUNT(&status, (int)model_size);
    compare("read through MPI", content, 0, model_size);
    free(content);
}

/* What open(2) and read(2) show. */
static void check_path(const char *name) {
    struct stat seen;
    if (stat(path_of(name), &seen) != 0) {
        complain("stat %s: %s", name, strerror(errno));
        return;
    }
    if ((size_t)seen.st_size != model_size) complain("stat %s: %lld bytes, should be %zu", name, (long long)seen.st_size, model_size);
    int fd = open(path_of(name), O_RDONLY);
    unsigned char *content = calloc(model_size + 1, 1);
    size_t length = 0;
    for (ssize_t part; fd >= 0 && (part = read(fd, content + length, model_size + 1 - length)) > 0;) length += (size_t)part;
    if (fd < 0 || length != model_size) complain("%s: read %zu bytes of %zu: %s", name, length, model_size, strerror(errno));
    compare("read(2)", content, 0, length < model_size ? length : model_size);
    if (fd >= 0) close(fd);
    free(content);
}

/* After the last close everybody sees everything. */
static void finish(MPI_File *file, const char *name) {
    DO(MPI_File_close(file));
    barrier();
    check_path(name);
    barrier();
}

/* ---- parts ---------------------------------------------------------------------------------- */

struct part {
    const char *name;
    void (*run)(void);
};

static int perform(int argc, char **argv, const struct part *parts) {
    MPI_Init(&argc, &argv);
    MPI_Comm_rank(MPI_COMM_WORLD, &rank);
    MPI_Comm_size(MPI_COMM_WORLD, &size);
    if (argc < 3) {
        fprintf(stderr, "usage: %s SIDE DIRECTORY [PART …]\n", argv[0]);
        MPI_Abort(MPI_COMM_WORLD, 2);
    }
    side = argv[1], directory = argv[2];
    char path[4096];
    snprintf(path, sizeof path, "%s/told.%d", side, rank);
    told = fopen(path, "a");
    for (int i = 3; i < argc; i++) {
        const struct part *chosen = parts;
        while (chosen->name && strcmp(chosen->name, argv[i])) chosen++;
        if (!chosen->name) {
            fprintf(stderr, "%s: no part is called %s\n", argv[0], argv[i]);
            MPI_Abort(MPI_COMM_WORLD, 2);
        }
        part = chosen->name;
        wrong = 0;
        chosen->run();
        barrier();
        tell("%s", wrong ? "bad" : "good");
        failed += wrong != 0;
    }
    fclose(told);
    MPI_Finalize();
    return failed ? 3 : 0;
}
