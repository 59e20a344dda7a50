/* Ranks that write one file together, as the area `log` runs them:
 *
 *   logranks FILE PIECE COUNT SYNC     rank r writes pieces r, r + ranks, …; MPI_File_sync after every SYNC of its own
 *
 * Rank 0 tells the seconds from MPI_File_open to MPI_File_close. */
#include <mpi.h>

#include "common.h"

static void check(int status, const char *what) {
    char message[MPI_MAX_ERROR_STRING];
    int len;
    if (status == MPI_SUCCESS) return;
    MPI_Error_string(status, message, &len);
    fprintf(stderr, "%s: %s\n", what, message);
    MPI_Abort(MPI_COMM_WORLD, 1);
}

int main(int argc, char **argv) {
    MPI_Init(&argc, &argv);
    if (argc != 5) {
        fprintf(stderr, "usage: logranks FILE PIECE COUNT SYNC\n");
        return 2;
    }
    uint64_t piece = strtoull(argv[2], NULL, 10), count = strtoull(argv[3], NULL, 10), sync = strtoull(argv[4], NULL, 10);
    int rank, ranks;
    MPI_Comm_rank(MPI_COMM_WORLD, &rank);
    MPI_Comm_size(MPI_COMM_WORLD, &ranks);
    unsigned char *block = new_block();
    MPI_File file;
    MPI_Barrier(MPI_COMM_WORLD);
    double began = seconds_now();
    check(MPI_File_open(MPI_COMM_WORLD, argv[1], MPI_MODE_WRONLY | MPI_MODE_CREATE, MPI_INFO_NULL, &file), argv[1]);
    for (uint64_t i = 0; i < count; i++) {
        uint64_t at = (i * (uint64_t)ranks + (uint64_t)rank) * piece;
        pattern_stamp(block, piece, at);
        check(MPI_File_write_at(file, (MPI_Offset)at, block, (int)piece, MPI_BYTE, MPI_STATUS_IGNORE), "MPI_File_write_at");
        if ((i + 1) % sync == 0) check(MPI_File_sync(file), "MPI_File_sync");
    }
    check(MPI_File_close(&file), "MPI_File_close");
    if (rank == 0) printf("{\"seconds\": %.9f}\n", seconds_now() - began);
    MPI_Finalize();
    return 0;
}
