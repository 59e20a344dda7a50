/* A profiling tool, as many are: it stands before MPI functions and calls them by their profiling names.
 * At the end it writes to the file $TOOL_SAW how many reads it saw. */
#include <mpi.h>
#include <stdio.h>
#include <stdlib.h>

static int seen;

int MPI_File_read_at(MPI_File file, MPI_Offset offset, void *buffer, int count, MPI_Datatype type, MPI_Status *status) {
    seen++;
    return PMPI_File_read_at(file, offset, buffer, count, type, status);
}

int MPI_File_read(MPI_File file, void *buffer, int count, MPI_Datatype type, MPI_Status *status) {
    seen++;
    return PMPI_File_read(file, buffer, count, type, status);
}

int MPI_Finalize(void) {
    FILE *saw = fopen(getenv("TOOL_SAW"), "w");
    fprintf(saw, "%d\n", seen);
    fclose(saw);
    return PMPI_Finalize();
}
