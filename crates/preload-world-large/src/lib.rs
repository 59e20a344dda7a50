//! `libsluice_world_large.so`: beside `libsluice_world.so`, the functions of MPI-4 with large counts.
//!
//! Programs find out whether an MPI library has these functions by looking for their names (mpi4py does, by
//! weak references). So they are exported by a library of their own, which `sluice run` preloads only
//! where the MPI library has them: MPICH's do, Open MPI's do not.

#[path = "../../preload-world/src/missing.rs"]
mod missing;
#[path = "../../preload-world/src/translate.rs"]
mod translate;
mod world;

use translate::communicators;

communicators! {
    ([a], b, c)
        "Comm_attach_buffer_c" "Comm_detach_buffer_c";
    (a, b, [c], d)
        "Pack_size_c";
    (a, b, c, d, [e])
        "Bcast_c";
    (a, b, c, [d], e, f)
        "Win_allocate_c" "Win_allocate_shared_c";
    (a, b, c, d, [e], f)
        "Ibcast_c" "Win_create_c";
    (a, b, c, d, e, [f])
        "Allreduce_c" "Bsend_c" "Exscan_c" "Reduce_scatter_block_c" "Reduce_scatter_c" "Rsend_c"
        "Scan_c" "Send_c" "Ssend_c";
    (a, b, c, d, [e], f, g)
        "Bcast_init_c";
    (a, b, c, d, e, [f], g)
        "Bsend_init_c" "Iallreduce_c" "Ibsend_c" "Iexscan_c" "Irecv_c" "Ireduce_scatter_block_c"
        "Ireduce_scatter_c" "Irsend_c" "Iscan_c" "Isend_c" "Issend_c" "Recv_c" "Recv_init_c"
        "Rsend_init_c" "Send_init_c" "Ssend_init_c";
    (a, b, c, d, e, f, [g])
        "Allgather_c" "Alltoall_c" "Neighbor_allgather_c" "Neighbor_alltoall_c" "Pack_c" "Reduce_c"
        "Unpack_c";
    (a, b, c, d, e, [f], g, h)
        "Allreduce_init_c" "Exscan_init_c" "Reduce_scatter_block_init_c" "Reduce_scatter_init_c"
        "Scan_init_c";
    (a, b, c, d, e, f, [g], h)
        "Iallgather_c" "Ialltoall_c" "Ineighbor_allgather_c" "Ineighbor_alltoall_c" "Ireduce_c";
    (a, b, c, d, e, f, g, [h])
        "Allgatherv_c" "Gather_c" "Neighbor_allgatherv_c" "Scatter_c";
    (a, b, c, d, e, f, [g], h, i)
        "Allgather_init_c" "Alltoall_init_c" "Neighbor_allgather_init_c" "Neighbor_alltoall_init_c"
        "Reduce_init_c";
    (a, b, c, d, e, f, g, [h], i)
        "Iallgatherv_c" "Igather_c" "Ineighbor_allgatherv_c" "Iscatter_c" "Isendrecv_replace_c"
        "Sendrecv_replace_c";
    (a, b, c, d, e, f, g, h, [i])
        "Alltoallv_c" "Alltoallw_c" "Gatherv_c" "Neighbor_alltoallv_c" "Neighbor_alltoallw_c"
        "Scatterv_c";
    (a, b, c, d, e, f, g, [h], i, j)
        "Allgatherv_init_c" "Gather_init_c" "Neighbor_allgatherv_init_c" "Scatter_init_c";
    (a, b, c, d, e, f, g, h, [i], j)
        "Ialltoallv_c" "Ialltoallw_c" "Igatherv_c" "Ineighbor_alltoallv_c" "Ineighbor_alltoallw_c"
        "Iscatterv_c";
    (a, b, c, d, e, f, g, h, [i], j, k)
        "Alltoallv_init_c" "Alltoallw_init_c" "Gatherv_init_c" "Neighbor_alltoallv_init_c"
        "Neighbor_alltoallw_init_c" "Scatterv_init_c";
    (a, b, c, d, e, f, g, h, i, j, [k], l)
        "Isendrecv_c" "Sendrecv_c";
}
