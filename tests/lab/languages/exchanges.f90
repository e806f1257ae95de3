! All-to-all, scatter and gather through the Fortran module. Prints "right"; stops with the number of
! the call that fails.
program exchanges
    use iso_c_binding
    use banyan
    type(c_ptr) :: context, comm, requests(9)
    integer(c_int32_t), asynchronous :: send(6), recv(6), spread(9), sums(6, 2), gathered(6), shares(2, 3)
    integer(c_int64_t) :: counts(3)
    integer(c_int64_t), target :: back(3)
    integer :: i, rank

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

    ! The same and others in flight, all at once, with blocks in reverse order and gaps between them.
    rank = banyan_comm_rank(comm)
    back = [6, 3, 0]
    spread = -1
    gathered = -1
    call banyan_check(banyan_alltoallv_init(comm, send, counts, c_null_ptr, spread, counts, c_loc(back), BANYAN_I32, requests(1)))
    call banyan_check(banyan_alltoall_init(comm, send, recv, 2_c_int64_t, BANYAN_I32, requests(2)))
    call banyan_check(banyan_scatter_init(comm, send, shares(:, 1), 2_c_int64_t, BANYAN_I32, 1, requests(3)))
    call banyan_check(banyan_scatterv_init(comm, send, counts, c_null_ptr, shares(:, 2), 2_c_int64_t, BANYAN_I32, 2, requests(4)))
    call banyan_check(banyan_gather_init(comm, send, gathered, 2_c_int64_t, BANYAN_I32, 0, requests(5)))
    call banyan_check(banyan_reduce_init(comm, send, sums(:, 1), 6_c_int64_t, BANYAN_I32, BANYAN_SUM, 1, requests(6)))
    call banyan_check(banyan_reduce_scatterv_init(comm, send, shares(:, 3), counts, BANYAN_I32, BANYAN_SUM, requests(7)))
    call banyan_check(banyan_allgatherv_init(comm, send, sums(:, 2), counts, BANYAN_I32, requests(8)))
    do i = 1, 8
        call banyan_check(banyan_post(requests(i)))
    end do
    do i = 1, 8
        call banyan_check(banyan_wait(requests(i)))
        call banyan_check(banyan_free(requests(i)))
    end do
    if (any(spread /= [2, 2, -1, 1, 1, -1, 0, 0, -1])) stop 13
    if (any(recv /= [0, 0, 1, 1, 2, 2])) stop 14
    if (any(shares(:, 1) /= 1) .or. any(shares(:, 2) /= 2) .or. any(shares(:, 3) /= 3)) stop 15
    if (rank == 0 .and. any(gathered /= [0, 0, 1, 1, 2, 2])) stop 16
    if (rank == 1 .and. any(sums(:, 1) /= 3)) stop 17
    if (any(sums(:, 2) /= [0, 0, 1, 1, 2, 2])) stop 18
    spread = -1
    call banyan_check(banyan_gatherv_init(comm, send, 2_c_int64_t, spread, counts, c_loc(back), BANYAN_I32, 0, requests(9)))
    call banyan_check(banyan_post(requests(9)))
    call banyan_check(banyan_wait(requests(9)))
    call banyan_check(banyan_free(requests(9)))
    if (rank == 0 .and. any(spread /= [2, 2, -1, 1, 1, -1, 0, 0, -1])) stop 19
    print "(a)", "right"
end program
