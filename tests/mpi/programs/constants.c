/* The constants of the header that this is compiled with, as `judge` prints ours. */
#include <mpi.h>
#include <stddef.h>
#include <stdio.h>

#define NUMBER(name, value) printf("%s %lld\n", name, (long long)(value))
#define HANDLE(name, value) printf("%s %#llx\n", name, (unsigned long long)(size_t)(value) & mask)

int main(void) {
    unsigned long long mask = sizeof(MPI_Comm) == 4 ? 0xffffffffu : ~0ull;
    NUMBER("handle_bytes", sizeof(MPI_Comm));
    NUMBER("file_bytes", sizeof(MPI_File));
    NUMBER("offset_bytes", sizeof(MPI_Offset));
    NUMBER("aint_bytes", sizeof(MPI_Aint));
    NUMBER("count_bytes", sizeof(MPI_Count));
#ifndef OPEN_MPI /* there, handles are addresses */
    HANDLE("comm_world", MPI_COMM_WORLD);
    HANDLE("comm_self", MPI_COMM_SELF);
    HANDLE("comm_null", MPI_COMM_NULL);
    HANDLE("info_null", MPI_INFO_NULL);
    HANDLE("file_null", MPI_FILE_NULL);
    HANDLE("datatype_null", MPI_DATATYPE_NULL);
    HANDLE("byte", MPI_BYTE);
    HANDLE("int", MPI_INT);
    HANDLE("double", MPI_DOUBLE);
    HANDLE("short_int", MPI_SHORT_INT);
    HANDLE("long_int", MPI_LONG_INT);
    HANDLE("double_int", MPI_DOUBLE_INT);
    HANDLE("long_double_int", MPI_LONG_DOUBLE_INT);
#endif
    NUMBER("status.size", sizeof(MPI_Status));
    NUMBER("status.source", offsetof(MPI_Status, MPI_SOURCE));
    NUMBER("status.tag", offsetof(MPI_Status, MPI_TAG));
    NUMBER("status.error", offsetof(MPI_Status, MPI_ERROR));
    printf("status_ignore %llu\n", (unsigned long long)(size_t)MPI_STATUS_IGNORE);
    printf("in_place %llu\n", (unsigned long long)(size_t)MPI_IN_PLACE);
    NUMBER("any_source", MPI_ANY_SOURCE);
    NUMBER("any_tag", MPI_ANY_TAG);
    NUMBER("proc_null", MPI_PROC_NULL);
    NUMBER("undefined", MPI_UNDEFINED);
    NUMBER("mode.create", MPI_MODE_CREATE);
    NUMBER("mode.rdonly", MPI_MODE_RDONLY);
    NUMBER("mode.wronly", MPI_MODE_WRONLY);
    NUMBER("mode.rdwr", MPI_MODE_RDWR);
    NUMBER("mode.delete_on_close", MPI_MODE_DELETE_ON_CLOSE);
    NUMBER("mode.unique_open", MPI_MODE_UNIQUE_OPEN);
    NUMBER("mode.excl", MPI_MODE_EXCL);
    NUMBER("mode.append", MPI_MODE_APPEND);
    NUMBER("mode.sequential", MPI_MODE_SEQUENTIAL);
    NUMBER("seek_set", MPI_SEEK_SET);
    NUMBER("seek_cur", MPI_SEEK_CUR);
    NUMBER("seek_end", MPI_SEEK_END);
    NUMBER("displacement_current", MPI_DISPLACEMENT_CURRENT);
    NUMBER("order_c", MPI_ORDER_C);
    NUMBER("order_fortran", MPI_ORDER_FORTRAN);
    NUMBER("distribute_block", MPI_DISTRIBUTE_BLOCK);
    NUMBER("distribute_cyclic", MPI_DISTRIBUTE_CYCLIC);
    NUMBER("distribute_none", MPI_DISTRIBUTE_NONE);
    NUMBER("distribute_default", MPI_DISTRIBUTE_DFLT_DARG);
    NUMBER("combiner.Named", MPI_COMBINER_NAMED);
    NUMBER("combiner.Dup", MPI_COMBINER_DUP);
    NUMBER("combiner.Contiguous", MPI_COMBINER_CONTIGUOUS);
    NUMBER("combiner.Vector", MPI_COMBINER_VECTOR);
    NUMBER("combiner.Hvector", MPI_COMBINER_HVECTOR);
    NUMBER("combiner.Indexed", MPI_COMBINER_INDEXED);
    NUMBER("combiner.Hindexed", MPI_COMBINER_HINDEXED);
    NUMBER("combiner.IndexedBlock", MPI_COMBINER_INDEXED_BLOCK);
    NUMBER("combiner.HindexedBlock", MPI_COMBINER_HINDEXED_BLOCK);
    NUMBER("combiner.Struct", MPI_COMBINER_STRUCT);
    NUMBER("combiner.Subarray", MPI_COMBINER_SUBARRAY);
    NUMBER("combiner.Darray", MPI_COMBINER_DARRAY);
    NUMBER("combiner.Fortran", MPI_COMBINER_F90_REAL);
    NUMBER("combiner.Fortran", MPI_COMBINER_F90_COMPLEX);
    NUMBER("combiner.Fortran", MPI_COMBINER_F90_INTEGER);
    NUMBER("combiner.Resized", MPI_COMBINER_RESIZED);
    NUMBER("error.count", MPI_ERR_COUNT);
    NUMBER("error.datatype", MPI_ERR_TYPE);
    NUMBER("error.argument", MPI_ERR_ARG);
    NUMBER("error.other", MPI_ERR_OTHER);
    NUMBER("error.unsupported_operation", MPI_ERR_UNSUPPORTED_OPERATION);
    NUMBER("error.no_space", MPI_ERR_NO_SPACE);
    NUMBER("error.file", MPI_ERR_FILE);
    NUMBER("error.io", MPI_ERR_IO);
    NUMBER("error.no_such_file", MPI_ERR_NO_SUCH_FILE);
    NUMBER("thread_multiple", MPI_THREAD_MULTIPLE);
    NUMBER("info_key_bytes_max", MPI_MAX_INFO_KEY);
    NUMBER("info_value_bytes_max", MPI_MAX_INFO_VAL);
    NUMBER("error_string_bytes_max", MPI_MAX_ERROR_STRING);
    NUMBER("datarep_bytes_max", MPI_MAX_DATAREP_STRING);
    return 0;
}
