! All-to-all, scatter and gather through the Fortran module. Prints "right"; stops with the number of
! the call that fails.
program exchanges
    use iso_c_binding
    use banyan
    type(c_ptr) :: context, comm
    integer(c_int32_t) :: send(6), recv(6)
    integer(c_int64_t) :: counts(3)

    counts = 2
    if (banyan_init(c_null_ptr, context) /= BANYAN_OK) stop 1
    if (banyan_comm_create(context, 0, comm) /= BANYAN_OK) stop 2
    send = banyan_comm_rank(comm)
    if (banyan_alltoall(comm, send, recv, 2_c_int64_t, BANYAN_I32) /= BANYAN_OK) stop 3
    if (recv(1) /= 0 .or. recv(3) /= 1 .or. recv(6) /= 2) stop 4
    if (banyan_alltoallv(comm, send, counts, c_null_ptr, recv, counts, c_null_ptr, BANYAN_I32) /= BANYAN_OK) stop 5
    if (banyan_scatter(comm, send, recv, 2_c_int64_t, BANYAN_I32, 1) /= BANYAN_OK) stop 6
    if (recv(1) /= 1) stop 7
    if (banyan_scatterv(comm, send, counts, c_null_ptr, recv, 2_c_int64_t, BANYAN_I32, 2) /= BANYAN_OK) stop 8
    if (recv(2) /= 2) stop 9
    if (banyan_gather(comm, send, recv, 2_c_int64_t, BANYAN_I32, 0) /= BANYAN_OK) stop 10
    if (banyan_gatherv(comm, send, 2_c_int64_t, recv, counts, c_null_ptr, BANYAN_I32, 0) /= BANYAN_OK) stop 11
    if (banyan_comm_rank(comm) == 0 .and. recv(5) /= 2) stop 12
    print "(a)", "right"
end program
