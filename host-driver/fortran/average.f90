! The average of a matrix over all ranks in Fortran: blocking, in flight, and an error. Checks its
! results. Run one process for each rank, with BANYAN_TABLE set to the rank's table image.
program average
    use banyan
    use, intrinsic :: iso_fortran_env, only: real64, int32, int64
    implicit none
    type(c_ptr) :: context, comm, request
    real(real64), allocatable :: gradient(:, :)
    integer(int32), target, asynchronous :: most(10)
    integer(c_int) :: status
    integer :: ranks

    call banyan_check(banyan_init(c_null_ptr, context))
    call banyan_check(banyan_comm_create(context, 0, comm))
    ranks = banyan_comm_size(comm)

    allocate (gradient(100, 50), source=real(banyan_comm_rank(comm), real64))
    call banyan_check(banyan_allreduce(comm, gradient, gradient, size(gradient, kind=int64), &
                                       banyan_dtype_of(gradient), BANYAN_SUM))
    gradient = gradient/ranks
    if (any(abs(gradient - (ranks - 1)/2.0_real64) > 0)) error stop 2

    most = banyan_comm_rank(comm)
    call banyan_check(banyan_allreduce_init(comm, most, most, 10_int64, banyan_dtype_of(most), BANYAN_MAX, request))
    call banyan_check(banyan_post(request))
    call banyan_check(banyan_wait(request))
    call banyan_check(banyan_free(request))
    if (any(most /= ranks - 1)) error stop 3

    status = banyan_allreduce(comm, gradient, gradient, 4_int64, BANYAN_F64, BANYAN_BXOR)
    if (status /= BANYAN_EUNSUPPORTED .or. len(banyan_error_text()) == 0) error stop 4

    print "(a, i0, a, i0, a, f0.1)", "rank ", banyan_comm_rank(comm), " of ", ranks, ": average ", gradient(1, 1)
    call banyan_check(banyan_comm_destroy(comm))
    call banyan_check(banyan_finalize(context))
end program
