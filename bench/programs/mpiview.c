/* Strided accesses through an MPI file view: what a program does that leaves
 * them to MPI-IO. Independent reads and writes, the library's own hints. */
#include <mpi.h>

#include "beside.h"

static MPI_File file;
static char *memory;
static size_t memory_len;
static char message[MPI_MAX_ERROR_STRING];

static const char *check(int status) {
    int len;
    if (status == MPI_SUCCESS) return NULL;
    MPI_Error_string(status, message, &len);
    return message;
}

/* As many blocks as one call carries, in one datatype. */
static const char *set_view(const struct request *r) {
    MPI_Datatype blocks, view;
    const char *wrong;
    int count = r->call > r->data ? (int)(r->call / r->data) : 1;
    MPI_Aint stride = (MPI_Aint)(r->data + r->hole);
    MPI_Type_create_hvector(count, (int)r->data, stride, MPI_BYTE, &blocks);
    MPI_Type_create_resized(blocks, 0, count * stride, &view);
    MPI_Type_commit(&view);
    wrong = check(MPI_File_set_view(file, (MPI_Offset)r->displacement, MPI_BYTE, view, "native", MPI_INFO_NULL));
    MPI_Type_free(&view);
    MPI_Type_free(&blocks);
    return wrong;
}

static const char *access_view(const struct request *r, uint64_t start, uint64_t len) {
    MPI_Status status;
    MPI_Count count;
    const char *wrong = check(r->writes
        ? MPI_File_write_at(file, (MPI_Offset)start, memory, (int)len, MPI_BYTE, &status)
        : MPI_File_read_at(file, (MPI_Offset)start, memory, (int)len, MPI_BYTE, &status));
    if (wrong) return wrong;
    MPI_Get_elements_x(&status, MPI_BYTE, &count);
    return (uint64_t)count == len ? NULL : "fewer bytes than asked for";
}

int main(int argc, char **argv) {
    MPI_Init(&argc, &argv);
    if (argc != 2) {
        fprintf(stderr, "usage: mpiview FILE\n");
        return 2;
    }
    const char *wrong = check(MPI_File_open(MPI_COMM_SELF, argv[1], MPI_MODE_RDWR, MPI_INFO_NULL, &file));
    if (wrong) {
        fprintf(stderr, "%s: %s\n", argv[1], wrong);
        return 1;
    }
    struct request r;
    while (next_request(&r)) {
        if (memory_len < r.call) {
            free(memory);
            memory_len = r.call;
            memory = malloc(memory_len);
            if (!memory) give_up("malloc");
            memset(memory, 0xa5, memory_len);
        }
        wrong = set_view(&r);
        if (wrong) {
            printf("error %s\n", wrong);
            fflush(stdout);
            continue;
        }
        answer(&r, access_view);
    }
    MPI_File_close(&file);
    MPI_Finalize();
    return 0;
}
