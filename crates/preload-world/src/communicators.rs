//! Every function of MPI that takes a communicator and treats MPI_COMM_WORLD like any other: MPI-5.0,
//! annex A.3, and what older versions had. Those with large counts are not here, see the crate's page;
//! those for which it matters which communicator it is are in `hooks`.
//!
//! `MPI_Abort` is left as it is, for it ends the whole job, and so are the conversions to other languages:
//! MPI_COMM_WORLD has a number there that comes back through here.

use crate::translate::communicators;

communicators! {
    ([a])
        "Barrier" "Comm_flush_buffer";
    ([a], b)
        "Attr_delete" "Cartdim_get" "Comm_call_errhandler" "Comm_delete_attr" "Comm_dup"
        "Comm_get_errhandler" "Comm_get_info" "Comm_group" "Comm_iflush_buffer" "Comm_rank"
        "Comm_remote_group" "Comm_remote_size" "Comm_set_info" "Comm_set_name" "Comm_size"
        "Comm_test_inter" "Errhandler_get" "Ibarrier" "Topo_test";
    ([a], b, c)
        "Attr_put" "Barrier_init" "Cart_rank" "Cart_sub" "Comm_attach_buffer" "Comm_create"
        "Comm_detach_buffer" "Comm_dup_with_info" "Comm_get_name" "Comm_idup" "Comm_set_attr"
        "Graph_neighbors_count" "Graphdims_get" "Intercomm_merge";
    ([a], [b], c)
        "Comm_compare";
    (a, [b], c)
        "Win_create_dynamic";
    ([a], b, c, d)
        "Cart_coords" "Comm_create_group" "Comm_idup_with_info" "Comm_split"
        "Dist_graph_neighbors_count" "Graph_neighbors";
    (a, b, [c], d)
        "Pack_size" "Probe";
    ([a], b, c, d, e)
        "Cart_get" "Cart_map" "Cart_shift" "Comm_split_type" "File_open" "Graph_get" "Graph_map";
    (a, b, [c], d, e)
        "Iprobe" "Mprobe";
    (a, b, c, [d], e)
        "Comm_accept" "Comm_connect";
    (a, b, c, d, [e])
        "Bcast";
    ([a], b, c, d, e, f)
        "Cart_create" "Graph_create";
    ([a], b, [c], d, e, f)
        "Intercomm_create";
    (a, b, [c], d, e, f)
        "Improbe";
    (a, b, c, [d], e, f)
        "Win_allocate" "Win_allocate_shared";
    (a, b, c, d, [e], f)
        "Ibcast" "Win_create";
    (a, b, c, d, e, [f])
        "Allreduce" "Bsend" "Exscan" "Reduce_scatter" "Reduce_scatter_block" "Rsend" "Scan" "Send"
        "Ssend";
    ([a], b, c, d, e, f, g)
        "Dist_graph_neighbors";
    (a, b, c, d, [e], f, g)
        "Bcast_init";
    (a, b, c, d, e, [f], g)
        "Bsend_init" "Iallreduce" "Ibsend" "Iexscan" "Irecv" "Ireduce_scatter"
        "Ireduce_scatter_block" "Irsend" "Iscan" "Isend" "Issend" "Recv" "Recv_init" "Rsend_init"
        "Send_init" "Ssend_init";
    (a, b, c, d, e, f, [g])
        "Allgather" "Alltoall" "Neighbor_allgather" "Neighbor_alltoall" "Pack" "Reduce" "Unpack";
    (a, b, c, d, e, [f], g, h)
        "Allreduce_init" "Comm_spawn" "Exscan_init" "Reduce_scatter_block_init"
        "Reduce_scatter_init" "Scan_init";
    (a, b, c, d, e, f, [g], h)
        "Iallgather" "Ialltoall" "Ineighbor_allgather" "Ineighbor_alltoall" "Ireduce";
    (a, b, c, d, e, f, g, [h])
        "Allgatherv" "Gather" "Neighbor_allgatherv" "Scatter";
    ([a], b, c, d, e, f, g, h, i)
        "Dist_graph_create";
    (a, b, c, d, e, f, [g], h, i)
        "Allgather_init" "Alltoall_init" "Comm_spawn_multiple" "Neighbor_allgather_init"
        "Neighbor_alltoall_init" "Precv_init" "Psend_init" "Reduce_init";
    (a, b, c, d, e, f, g, [h], i)
        "Iallgatherv" "Igather" "Ineighbor_allgatherv" "Iscatter" "Isendrecv_replace"
        "Sendrecv_replace";
    (a, b, c, d, e, f, g, h, [i])
        "Alltoallv" "Alltoallw" "Gatherv" "Neighbor_alltoallv" "Neighbor_alltoallw" "Scatterv";
    ([a], b, c, d, e, f, g, h, i, j)
        "Dist_graph_create_adjacent";
    (a, b, c, d, e, f, g, [h], i, j)
        "Allgatherv_init" "Gather_init" "Neighbor_allgatherv_init" "Scatter_init";
    (a, b, c, d, e, f, g, h, [i], j)
        "Ialltoallv" "Ialltoallw" "Igatherv" "Ineighbor_alltoallv" "Ineighbor_alltoallw"
        "Iscatterv";
    (a, b, c, d, e, f, g, h, [i], j, k)
        "Alltoallv_init" "Alltoallw_init" "Gatherv_init" "Neighbor_alltoallv_init"
        "Neighbor_alltoallw_init" "Scatterv_init";
    (a, b, c, d, e, f, g, h, i, j, [k], l)
        "Isendrecv" "Sendrecv";
}
