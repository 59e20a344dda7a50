/* A VTK image whose values ranks write to one file by MPI-IO: a header by rank 0, then raw big-endian floats, each rank its
 * slabs, in an order that is not the file's, in several collective and independent writes.
 *
 * usage: pieces_vtk FILE */
#include <mpi.h>
#include <stdint.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

enum { X = 160, Y = 100, Z = 120 };

static void must(int code, const char *call) {
    if (code == MPI_SUCCESS) return;
    fprintf(stderr, "%s: error %d\n", call, code);
    MPI_Abort(MPI_COMM_WORLD, 3);
}
#define DO(call) must(call, #call)

static float value(int x, int y, int z) { return (float)(x + 1000 * y) + (float)z / 256; }

int main(int argc, char **argv) {
    int rank, size;
    MPI_Init(&argc, &argv);
    MPI_Comm_rank(MPI_COMM_WORLD, &rank);
    MPI_Comm_size(MPI_COMM_WORLD, &size);
    char header[512];
    int length = snprintf(header, sizeof header,
                          "# vtk DataFile Version 3.0\nslabs of ranks\nBINARY\nDATASET STRUCTURED_POINTS\n"
                          "DIMENSIONS %d %d %d\nORIGIN 0 0 0\nSPACING 1 1 1\nPOINT_DATA %d\nSCALARS field float 1\n"
                          "LOOKUP_TABLE default\n", X, Y, Z, X * Y * Z);
    MPI_File file;
    DO(MPI_File_open(MPI_COMM_WORLD, argv[argc - 1], MPI_MODE_CREATE | MPI_MODE_WRONLY, MPI_INFO_NULL, &file));
    uint32_t *slab = malloc(sizeof *slab * X * Y);
    /* From the end to the beginning. */
    for (int z = Z - 1; z >= 0; z--) {
        if (z % size != rank) continue;
        for (int y = 0; y < Y; y++)
            for (int x = 0; x < X; x++) {
                float v = value(x, y, z);
                uint32_t bits;
                memcpy(&bits, &v, sizeof bits);
                slab[y * X + x] = __builtin_bswap32(bits);
            }
        MPI_Offset at = length + (MPI_Offset)z * X * Y * 4;
        DO(MPI_File_write_at(file, at, slab, X * Y * 4, MPI_BYTE, MPI_STATUS_IGNORE));
    }
    DO(MPI_File_sync(file));
    DO(MPI_File_write_at_all(file, 0, header, rank == 0 ? length : 0, MPI_BYTE, MPI_STATUS_IGNORE));
    /* The lines after the last value. */
    if (rank == size - 1) DO(MPI_File_write_at(file, length + (MPI_Offset)X * Y * Z * 4, "\n", 1, MPI_BYTE, MPI_STATUS_IGNORE));
    DO(MPI_File_close(&file));
    free(slab);
    MPI_Finalize();
    return 0;
}
