/* Where ranks write: segments, strides, views with holes that are other ranks', moves, records of every size.
 * See scene.h. */
#include "scene.h"

#define BLOCK 1000
#define BLOCKS 60

/* IOR's segmented file: each rank's part is in one piece. Sizes of calls from one byte to many pages. */
static void segmented(void) {
    static const size_t sizes[] = {1, 7, 512, 4096, 4097, 65536, 100001};
    MPI_File file = new_file(part);
    size_t whole = 0, calls = sizeof sizes / sizeof *sizes;
    for (size_t i = 0; i < calls; i++) whole += sizes[i];
    for (int writer = 0; writer < size; writer++) {
        uint64_t at = whole * (unsigned)writer;
        for (size_t i = 0; i < calls; at += sizes[i++]) {
            void *bytes = put(1, (unsigned)writer, at, sizes[i]);
            MPI_Status status;
            if (!bytes) continue;
            DO(MPI_File_write_at(file, (MPI_Offset)at, bytes, (int)sizes[i], MPI_BYTE, &status));
            COUNT(&status, (int)sizes[i]);
        }
    }
    meet(file);
    check_here(file);
    finish(&file, part);
}

/* IOR's strided file: ranks take turns, block by block, each block by a call of its own. */
static void strided(void) {
    MPI_File file = new_file(part);
    for (unsigned block = 0; block < BLOCKS * (unsigned)size; block++) {
        void *bytes = put(1, block % (unsigned)size, (uint64_t)block * BLOCK, BLOCK);
        if (bytes) DO(MPI_File_write_at(file, (MPI_Offset)block * BLOCK, bytes, BLOCK, MPI_BYTE, MPI_STATUS_IGNORE));
    }
    meet(file);
    check_here(file);
    finish(&file, part);
}

/* The same by views: what is between a rank's blocks is other ranks'. `lanes` is how many blocks a row has. */
static void view_of(MPI_File file, int lane, int lanes) {
    MPI_Datatype row, type;
    MPI_Type_vector(BLOCKS, BLOCK, BLOCK * lanes, MPI_BYTE, &row);
    MPI_Type_create_resized(row, 0, (MPI_Aint)BLOCKS * BLOCK * lanes, &type);
    MPI_Type_commit(&type);
    DO(MPI_File_set_view(file, (MPI_Offset)lane * BLOCK, MPI_BYTE, type, "native", MPI_INFO_NULL));
    MPI_Type_free(&row);
    MPI_Type_free(&type);
}

/* The blocks of one lane in one buffer; the model takes those of all. */
static unsigned char *lane_of(unsigned epoch, int lane, int lanes, int writer) {
    unsigned char *bytes = malloc(BLOCKS * BLOCK);
    for (int block = 0; block < BLOCKS; block++) {
        uint64_t at = (uint64_t)(block * lanes + lane) * BLOCK;
        expect(epoch, (unsigned)writer, at, BLOCK);
        fill(bytes + block * BLOCK, epoch, (unsigned)writer, at, BLOCK);
    }
    return bytes;
}

static void write_lanes(MPI_File file, unsigned epoch, int lanes, int shift, int collective) {
    unsigned char *mine = NULL;
    MPI_Status status;
    for (int writer = 0; writer < size; writer++) {
        unsigned char *bytes = lane_of(epoch, (writer + shift) % lanes, lanes, writer);
        if (writer == rank) mine = bytes;
        else free(bytes);
    }
    view_of(file, (rank + shift) % lanes, lanes);
    DO((collective ? MPI_File_write_all : MPI_File_write)(file, mine, BLOCKS * BLOCK, MPI_BYTE, &status));
    COUNT(&status, BLOCKS * BLOCK);
    free(mine);
}

static void view(void) {
    MPI_File file = filled_file(part, (size_t)BLOCKS * BLOCK * (unsigned)size);
    write_lanes(file, 1, size, 0, 0);
    view_bytes(file);
    meet(file);
    check_here(file);
    finish(&file, part);
}

static void collective(void) {
    MPI_File file = new_file(part);
    write_lanes(file, 1, size, 0, 1);
    view_bytes(file);
    meet(file);
    check_here(file);
    write_lanes(file, 2, size, 1, 1);
    view_bytes(file);
    meet(file);
    check_here(file);
    finish(&file, part);
}

/* Two-phase writes with a lane that nobody writes in this call: aggregators read and write back what was there,
 * and what was there was written by any rank a moment ago. */
static void collective_holes(void) {
    int lanes = size + 1;
    MPI_File file = filled_file(part, (size_t)BLOCKS * BLOCK * (unsigned)lanes);
    for (unsigned epoch = 1; epoch <= 4; epoch++) {
        write_lanes(file, epoch, lanes, (int)epoch, 1);
        /* MPI requires a sync only of who touches the same bytes; nobody here does. */
        barrier();
    }
    view_bytes(file);
    meet(file);
    check_here(file);
    finish(&file, part);
}

/* Data sieving in turns: a rank's window was read before the others wrote into its holes, and may be read again. */
static void turns(void) {
    MPI_File file = filled_file(part, (size_t)BLOCKS * BLOCK * (unsigned)size);
    for (unsigned epoch = 1; epoch <= 3; epoch++)
        for (int writer = 0; writer < size; writer++) {
            unsigned char *bytes = lane_of(epoch, writer, size, writer);
            view_of(file, rank, size);
            if (writer == rank) DO(MPI_File_write(file, bytes, BLOCKS * BLOCK, MPI_BYTE, MPI_STATUS_IGNORE));
            free(bytes);
            barrier();
        }
    view_bytes(file);
    meet(file);
    check_here(file);
    finish(&file, part);
}

/* A block of a matrix with a frame of ghost cells in memory. */
static void subarray(void) {
    enum { ROWS = 48, COLUMNS = 36 };
    int grid[2] = {0, 0};
    MPI_Dims_create(size, 2, grid);
    int global[2] = {ROWS * grid[0], COLUMNS * grid[1]}, local[2] = {ROWS, COLUMNS};
    int start[2] = {rank / grid[1] * ROWS, rank % grid[1] * COLUMNS}, framed[2] = {ROWS + 2, COLUMNS + 2}, inside[2] = {1, 1};
    MPI_Datatype filetype, memory;
    MPI_Type_create_subarray(2, global, local, start, MPI_ORDER_C, MPI_UINT64_T, &filetype);
    MPI_Type_create_subarray(2, framed, local, inside, MPI_ORDER_C, MPI_UINT64_T, &memory);
    MPI_Type_commit(&filetype);
    MPI_Type_commit(&memory);
    uint64_t *cells = calloc((ROWS + 2) * (COLUMNS + 2), 8);
    MPI_File file = new_file(part);
    for (unsigned epoch = 1; epoch <= 2; epoch++) {
        for (int row = 0; row < global[0]; row++)
            for (int column = 0; column < global[1]; column += COLUMNS) {
                unsigned writer = (unsigned)(row / ROWS * grid[1] + column / COLUMNS);
                uint64_t at = ((uint64_t)row * (unsigned)global[1] + (unsigned)column) * 8;
                expect(epoch, writer, at, COLUMNS * 8);
                if ((int)writer == rank) fill(cells + (row - start[0] + 1) * (COLUMNS + 2) + 1, epoch, writer, at, COLUMNS * 8);
            }
        DO(MPI_File_set_view(file, 0, MPI_UINT64_T, filetype, "native", MPI_INFO_NULL));
        DO(MPI_File_write_all(file, cells, 1, memory, MPI_STATUS_IGNORE));
    }
    view_bytes(file);
    meet(file);
    check_here(file);
    free(cells);
    MPI_Type_free(&filetype);
    MPI_Type_free(&memory);
    finish(&file, part);
}

/* A header by stdio, before the file is opened by MPI; everybody's part behind it (as LAMMPS's restart files). */
static void header(void) {
    for (unsigned epoch = 1; epoch <= 2; epoch++) {
        model_resize(0);
        void *bytes = put(epoch, 0, 0, 333);
        if (rank == 0) {
            FILE *out = fopen(path_of(part), "wb");
            if (!out || fwrite(bytes, 1, 111, out) != 111 || fwrite((char *)bytes + 111, 1, 222, out) != 222 || fclose(out) != 0)
                complain("header: %s", strerror(errno));
        }
        barrier();
        MPI_File file = open_file(part, MPI_MODE_CREATE | MPI_MODE_WRONLY);
        SIZE(file);
        void *mine = NULL;
        for (unsigned writer = 0; writer < (unsigned)size; writer++)
            if ((bytes = put(epoch, writer, 333 + (uint64_t)writer * 5003, 5003))) mine = bytes;
        DO(MPI_File_set_view(file, 333, MPI_BYTE, MPI_BYTE, "native", MPI_INFO_NULL));
        DO(MPI_File_write_at_all(file, (MPI_Offset)rank * 5003, mine, 5003, MPI_BYTE, MPI_STATUS_IGNORE));
        finish(&file, part);
        /* A trailer by stdio again, after the close. */
        bytes = put(epoch, 0, model_size, 77);
        if (rank == 0) {
            FILE *out = fopen(path_of(part), "ab");
            if (!out || fwrite(bytes, 1, 77, out) != 77 || fclose(out) != 0) complain("trailer: %s", strerror(errno));
        }
        barrier();
        check_path(part);
        barrier();
    }
}

/* The file is closed, and opened by ranks that divide it otherwise. */
static void reopened(void) {
    size_t length = 30011;
    for (unsigned epoch = 1; epoch <= 4; epoch++) {
        MPI_File file = epoch == 1 ? new_file(part) : open_file(part, MPI_MODE_RDWR);
        if (epoch > 1) check_here(file);
        barrier();
        for (int place = 0; place < size; place++) {
            unsigned writer = ((unsigned)place + epoch) % (unsigned)size;
            void *bytes = put(epoch, writer, length * (unsigned)place, length - 11 * epoch);
            if (bytes) DO(MPI_File_write_at(file, (MPI_Offset)(length * (unsigned)place), bytes, (int)(length - 11 * epoch), MPI_BYTE, MPI_STATUS_IGNORE));
        }
        finish(&file, part);
    }
}

/* As PnetCDF makes room in front: from the end, ranks read what others wrote and write it further behind. */
static void moved(void) {
    enum { CHUNK = 10000, ROUNDS = 12, SHIFT = 3456 };
    MPI_File file = new_file(part);
    for (int round = 0; round < ROUNDS; round++)
        for (int writer = 0; writer < size; writer++) {
            uint64_t at = (uint64_t)(round * size + writer) * CHUNK;
            void *bytes = put(1, (unsigned)writer, at, CHUNK);
            if (writer == rank) DO(MPI_File_write_at_all(file, (MPI_Offset)at, bytes, CHUNK, MPI_BYTE, MPI_STATUS_IGNORE));
        }
    meet(file);
    unsigned char *bytes = malloc(CHUNK);
    for (int round = ROUNDS - 1; round >= 0; round--) {
        /* The next rank's chunk, not one's own. */
        MPI_Offset at = (MPI_Offset)(round * size + (rank + 1) % size) * CHUNK;
        MPI_Status status;
        DO(MPI_File_read_at_all(file, at, bytes, CHUNK, MPI_BYTE, &status));
        COUNT(&status, CHUNK);
        compare("a chunk to be moved", bytes, (uint64_t)at, CHUNK);
        barrier();
        DO(MPI_File_write_at_all(file, at + SHIFT, bytes, CHUNK, MPI_BYTE, MPI_STATUS_IGNORE));
        barrier();
    }
    free(bytes);
    size_t length = model_size;
    model_resize(length + SHIFT);
    memmove(model + SHIFT, model, length);
    bytes = put(2, 0, 0, SHIFT);
    if (bytes) DO(MPI_File_write_at(file, 0, bytes, SHIFT, MPI_BYTE, MPI_STATUS_IGNORE));
    meet(file);
    check_here(file);
    finish(&file, part);
}

/* One call longer than any buffer, in the midst of small ones. */
static void large(void) {
    size_t length = (20u << 20) + 3;
    MPI_File file = new_file(part);
    for (int writer = 0; writer < size; writer++) {
        uint64_t at = (length + 100) * (unsigned)writer;
        void *bytes = put(1, (unsigned)writer, at, 50);
        if (bytes) DO(MPI_File_write_at(file, (MPI_Offset)at, bytes, 50, MPI_BYTE, MPI_STATUS_IGNORE));
        bytes = put(1, (unsigned)writer, at + 50, length);
        if (bytes) DO(MPI_File_write_at(file, (MPI_Offset)at + 50, bytes, (int)length, MPI_BYTE, MPI_STATUS_IGNORE));
        bytes = put(1, (unsigned)writer, at + 50 + length, 50);
        if (bytes) DO(MPI_File_write_at(file, (MPI_Offset)(at + 50 + length), bytes, 50, MPI_BYTE, MPI_STATUS_IGNORE));
    }
    finish(&file, part);
}

/* Thousands of small writes, one upon the other here and there (as HDF5's independent transfers). */
static void small(void) {
    enum { WORD = 64, WORDS = 1500 };
    MPI_File file = new_file(part);
    for (unsigned epoch = 1; epoch <= 3; epoch++)
        for (int i = 0; i < WORDS; i++)
            for (int writer = 0; writer < size; writer++) {
                /* In an order that is nobody's; epochs overwrite two words of three. */
                int word = (int)((unsigned)i * 617u % WORDS);
                if ((word + (int)epoch) % 3 == 0 && epoch > 1) continue;
                uint64_t at = (uint64_t)(word * size + writer) * WORD;
                void *bytes = put(epoch, (unsigned)writer, at, WORD);
                if (bytes) DO(MPI_File_write_at(file, (MPI_Offset)at, bytes, WORD, MPI_BYTE, MPI_STATUS_IGNORE));
            }
    meet(file);
    check_here(file);
    finish(&file, part);
}

/* Each rank sees at once what it wrote itself, by every way there is: the handle, a second one, open(2). */
static void own_writes(void) {
    enum { EACH = 8192 };
    MPI_File file = filled_file(part, (size_t)EACH * (unsigned)size), own;
    DO(MPI_File_open(MPI_COMM_SELF, path_of(part), MPI_MODE_RDWR, MPI_INFO_NULL, &own));
    int fd = open(path_of(part), O_RDONLY);
    uint64_t start = (uint64_t)EACH * (unsigned)rank;
    unsigned char bytes[EACH];
    for (unsigned epoch = 1; epoch <= 20; epoch++)
        for (int writer = 0; writer < size; writer++) {
            uint64_t at = (uint64_t)EACH * (unsigned)writer + epoch * 211;
            size_t length = 17 * epoch + 100;
            void *written = put(epoch, (unsigned)writer, at, length);
            if (!written) continue;
            MPI_File by = epoch % 2 ? file : own;
            DO(MPI_File_write_at(by, (MPI_Offset)at, written, (int)length, MPI_BYTE, MPI_STATUS_IGNORE));
            DO(MPI_File_read_at(by, (MPI_Offset)start, bytes, EACH, MPI_BYTE, MPI_STATUS_IGNORE));
            compare("the same handle", bytes, start, EACH);
            DO(MPI_File_read_at(epoch % 2 ? own : file, (MPI_Offset)start, bytes, EACH, MPI_BYTE, MPI_STATUS_IGNORE));
            compare("another handle", bytes, start, EACH);
            if (pread(fd, bytes, EACH, (off_t)start) != EACH) complain("pread: %s", strerror(errno));
            compare("open(2)", bytes, start, EACH);
        }
    close(fd);
    DO(MPI_File_close(&own));
    meet(file);
    check_here(file);
    finish(&file, part);
}

/* Another rank has the bytes after a barrier, without sync: MPI does not promise it, every local file system does
 * it, and programs rely on it. */
static void other_writes(void) {
    enum { EACH = 3000 };
    MPI_File file = filled_file(part, (size_t)EACH * (unsigned)size);
    for (unsigned epoch = 1; epoch <= 10; epoch++) {
        for (int writer = 0; writer < size; writer++) {
            void *bytes = put(epoch, (unsigned)writer, (uint64_t)EACH * (unsigned)writer, EACH);
            if (bytes) DO(MPI_File_write_at(file, (MPI_Offset)EACH * writer, bytes, EACH, MPI_BYTE, MPI_STATUS_IGNORE));
        }
        barrier();
        check_here(file);
        barrier();
    }
    finish(&file, part);
}

static const struct part parts[] = {
    {"segmented", segmented}, {"strided", strided}, {"view", view}, {"collective", collective},
    {"collective-holes", collective_holes}, {"turns", turns}, {"subarray", subarray}, {"header", header},
    {"reopened", reopened}, {"moved", moved}, {"large", large}, {"small", small},
    {"own-writes", own_writes}, {"other-writes", other_writes}, {NULL, NULL},
};

int main(int argc, char **argv) { return perform(argc, argv, parts); }
