! libbanyan for Fortran 2018. Functions and constants have the names of banyan.h and return its
! status; handles are type(c_ptr). Buffers are contiguous arrays of any type and rank; the caller
! names the element type, or obtains it with banyan_dtype_of. Buffers of operations that are still in
! flight need the asynchronous or target attribute. Compile this file with the program and link with
! -lbanyan.
!
!   use banyan
!   type(c_ptr) :: context, comm
!   call banyan_check(banyan_init(c_null_ptr, context))
!   call banyan_check(banyan_comm_create(context, 0, comm))
!   call banyan_check(banyan_allreduce(comm, x, y, size(x, kind=int64), banyan_dtype_of(x), BANYAN_SUM))
module banyan
    use, intrinsic :: iso_c_binding
    use, intrinsic :: iso_fortran_env, only: error_unit, int8, int32, int64, real32, real64
    implicit none
    private :: int8, int32, real32, real64, error_unit

    enum, bind(C)
        enumerator :: BANYAN_SUM = 1, BANYAN_PROD, BANYAN_MIN, BANYAN_MAX, BANYAN_BAND, BANYAN_BOR, BANYAN_BXOR
    end enum
    enum, bind(C)
        enumerator :: BANYAN_I8 = 1, BANYAN_U8, BANYAN_I32, BANYAN_U32, BANYAN_I64, BANYAN_U64
        enumerator :: BANYAN_F16, BANYAN_BF16, BANYAN_F32, BANYAN_F64
    end enum
    enum, bind(C)
        enumerator :: BANYAN_FAST = 1, BANYAN_DET, BANYAN_EXACT
    end enum
    enum, bind(C)
        enumerator :: BANYAN_ERANGE = -18, BANYAN_EABORTED, BANYAN_ESTATE, BANYAN_EIO, BANYAN_EPERM
        enumerator :: BANYAN_EUNSUPPORTED, BANYAN_EMISMATCH, BANYAN_ETIMEDOUT, BANYAN_EAGAIN, BANYAN_EBUSY
        enumerator :: BANYAN_EEXIST, BANYAN_ENOENT, BANYAN_EVERSION, BANYAN_ECHECKSUM, BANYAN_EFORMAT
        enumerator :: BANYAN_ELIMIT, BANYAN_ENOMEM, BANYAN_EINVAL, BANYAN_OK
    end enum

    interface
        ! config is c_null_ptr: all values come from the settings BANYAN_*.
        function banyan_init(config, context) bind(C) result(status)
            import
            type(c_ptr), value :: config
            type(c_ptr), intent(out) :: context
            integer(c_int) :: status
        end function
        function banyan_finalize(context) bind(C) result(status)
            import
            type(c_ptr), value :: context
            integer(c_int) :: status
        end function
        function banyan_comm_create(context, job, comm) bind(C) result(status)
            import
            type(c_ptr), value :: context
            integer(c_int32_t), value :: job
            type(c_ptr), intent(out) :: comm
            integer(c_int) :: status
        end function
        function banyan_comm_split(parent, color, key, comm) bind(C) result(status)
            import
            type(c_ptr), value :: parent
            integer(c_int), value :: color, key
            type(c_ptr), intent(out) :: comm
            integer(c_int) :: status
        end function
        function banyan_comm_dup(parent, comm) bind(C) result(status)
            import
            type(c_ptr), value :: parent
            type(c_ptr), intent(out) :: comm
            integer(c_int) :: status
        end function
        function banyan_comm_destroy(comm) bind(C) result(status)
            import
            type(c_ptr), value :: comm
            integer(c_int) :: status
        end function
        function banyan_comm_rank(comm) bind(C) result(rank)
            import
            type(c_ptr), value :: comm
            integer(c_int32_t) :: rank
        end function
        function banyan_comm_size(comm) bind(C) result(count)
            import
            type(c_ptr), value :: comm
            integer(c_int32_t) :: count
        end function
        function banyan_abort(comm) bind(C) result(status)
            import
            type(c_ptr), value :: comm
            integer(c_int) :: status
        end function

        function banyan_allreduce(comm, send, recv, count, dtype, op) bind(C) result(status)
            import
            type(c_ptr), value :: comm
            type(*), intent(in) :: send(*)
            type(*) :: recv(*)
            integer(c_int64_t), value :: count
            integer(c_int), value :: dtype, op
            integer(c_int) :: status
        end function
        function banyan_reduce_scatter(comm, send, recv, count, dtype, op) bind(C) result(status)
            import
            type(c_ptr), value :: comm
            type(*), intent(in) :: send(*)
            type(*) :: recv(*)
            integer(c_int64_t), value :: count
            integer(c_int), value :: dtype, op
            integer(c_int) :: status
        end function
        function banyan_reduce_scatterv(comm, send, recv, counts, dtype, op) bind(C) result(status)
            import
            type(c_ptr), value :: comm
            type(*), intent(in) :: send(*)
            type(*) :: recv(*)
            integer(c_int64_t), intent(in) :: counts(*)
            integer(c_int), value :: dtype, op
            integer(c_int) :: status
        end function
        function banyan_allgather(comm, send, recv, count, dtype) bind(C) result(status)
            import
            type(c_ptr), value :: comm
            type(*), intent(in) :: send(*)
            type(*) :: recv(*)
            integer(c_int64_t), value :: count
            integer(c_int), value :: dtype
            integer(c_int) :: status
        end function
        function banyan_allgatherv(comm, send, recv, counts, dtype) bind(C) result(status)
            import
            type(c_ptr), value :: comm
            type(*), intent(in) :: send(*)
            type(*) :: recv(*)
            integer(c_int64_t), intent(in) :: counts(*)
            integer(c_int), value :: dtype
            integer(c_int) :: status
        end function
        function banyan_broadcast(comm, buffer, count, dtype, root) bind(C) result(status)
            import
            type(c_ptr), value :: comm
            type(*) :: buffer(*)
            integer(c_int64_t), value :: count
            integer(c_int), value :: dtype
            integer(c_int32_t), value :: root
            integer(c_int) :: status
        end function
        function banyan_reduce(comm, send, recv, count, dtype, op, root) bind(C) result(status)
            import
            type(c_ptr), value :: comm
            type(*), intent(in) :: send(*)
            type(*) :: recv(*)
            integer(c_int64_t), value :: count
            integer(c_int), value :: dtype, op
            integer(c_int32_t), value :: root
            integer(c_int) :: status
        end function
        function banyan_barrier(comm) bind(C) result(status)
            import
            type(c_ptr), value :: comm
            integer(c_int) :: status
        end function
        ! Each message has one receiver. Offsets: c_loc of integers of 64 bits, or c_null_ptr: blocks of
        ! unequal size follow each other.
        function banyan_alltoall(comm, send, recv, count, dtype) bind(C) result(status)
            import
            type(c_ptr), value :: comm
            type(*), intent(in) :: send(*)
            type(*) :: recv(*)
            integer(c_int64_t), value :: count
            integer(c_int), value :: dtype
            integer(c_int) :: status
        end function
        function banyan_alltoallv(comm, send, send_counts, send_offsets, &
                recv, recv_counts, recv_offsets, dtype) bind(C) result(status)
            import
            type(c_ptr), value :: comm
            type(*), intent(in) :: send(*)
            integer(c_int64_t), intent(in) :: send_counts(*)
            type(c_ptr), value :: send_offsets
            type(*) :: recv(*)
            integer(c_int64_t), intent(in) :: recv_counts(*)
            type(c_ptr), value :: recv_offsets
            integer(c_int), value :: dtype
            integer(c_int) :: status
        end function
        function banyan_scatter(comm, send, recv, count, dtype, root) bind(C) result(status)
            import
            type(c_ptr), value :: comm
            type(*), intent(in) :: send(*)
            type(*) :: recv(*)
            integer(c_int64_t), value :: count
            integer(c_int), value :: dtype
            integer(c_int32_t), value :: root
            integer(c_int) :: status
        end function
        function banyan_scatterv(comm, send, counts, offsets, &
                recv, count, dtype, root) bind(C) result(status)
            import
            type(c_ptr), value :: comm
            type(*), intent(in) :: send(*)
            integer(c_int64_t), intent(in) :: counts(*)
            type(c_ptr), value :: offsets
            type(*) :: recv(*)
            integer(c_int64_t), value :: count
            integer(c_int), value :: dtype
            integer(c_int32_t), value :: root
            integer(c_int) :: status
        end function
        function banyan_gather(comm, send, recv, count, dtype, root) bind(C) result(status)
            import
            type(c_ptr), value :: comm
            type(*), intent(in) :: send(*)
            type(*) :: recv(*)
            integer(c_int64_t), value :: count
            integer(c_int), value :: dtype
            integer(c_int32_t), value :: root
            integer(c_int) :: status
        end function
        function banyan_gatherv(comm, send, count, recv, counts, offsets, dtype, root) bind(C) result(status)
            import
            type(c_ptr), value :: comm
            type(*), intent(in) :: send(*)
            integer(c_int64_t), value :: count
            type(*) :: recv(*)
            integer(c_int64_t), intent(in) :: counts(*)
            type(c_ptr), value :: offsets
            integer(c_int), value :: dtype
            integer(c_int32_t), value :: root
            integer(c_int) :: status
        end function

        function banyan_allreduce_init(comm, send, recv, count, dtype, op, request) bind(C) result(status)
            import
            type(c_ptr), value :: comm
            type(*), intent(in), asynchronous :: send(*)
            type(*), asynchronous :: recv(*)
            integer(c_int64_t), value :: count
            integer(c_int), value :: dtype, op
            type(c_ptr), intent(out) :: request
            integer(c_int) :: status
        end function
        function banyan_broadcast_init(comm, buffer, count, dtype, root, request) bind(C) result(status)
            import
            type(c_ptr), value :: comm
            type(*), asynchronous :: buffer(*)
            integer(c_int64_t), value :: count
            integer(c_int), value :: dtype
            integer(c_int32_t), value :: root
            type(c_ptr), intent(out) :: request
            integer(c_int) :: status
        end function
        function banyan_reduce_scatter_init(comm, send, recv, count, dtype, op, request) bind(C) result(status)
            import
            type(c_ptr), value :: comm
            type(*), intent(in), asynchronous :: send(*)
            type(*), asynchronous :: recv(*)
            integer(c_int64_t), value :: count
            integer(c_int), value :: dtype, op
            type(c_ptr), intent(out) :: request
            integer(c_int) :: status
        end function
        function banyan_allgather_init(comm, send, recv, count, dtype, request) bind(C) result(status)
            import
            type(c_ptr), value :: comm
            type(*), intent(in), asynchronous :: send(*)
            type(*), asynchronous :: recv(*)
            integer(c_int64_t), value :: count
            integer(c_int), value :: dtype
            type(c_ptr), intent(out) :: request
            integer(c_int) :: status
        end function
        function banyan_reduce_scatterv_init(comm, send, recv, counts, dtype, op, request) bind(C) result(status)
            import
            type(c_ptr), value :: comm
            type(*), intent(in), asynchronous :: send(*)
            type(*), asynchronous :: recv(*)
            integer(c_int64_t), intent(in) :: counts(*)
            integer(c_int), value :: dtype, op
            type(c_ptr), intent(out) :: request
            integer(c_int) :: status
        end function
        function banyan_allgatherv_init(comm, send, recv, counts, dtype, request) bind(C) result(status)
            import
            type(c_ptr), value :: comm
            type(*), intent(in), asynchronous :: send(*)
            type(*), asynchronous :: recv(*)
            integer(c_int64_t), intent(in) :: counts(*)
            integer(c_int), value :: dtype
            type(c_ptr), intent(out) :: request
            integer(c_int) :: status
        end function
        function banyan_reduce_init(comm, send, recv, count, dtype, op, root, request) bind(C) result(status)
            import
            type(c_ptr), value :: comm
            type(*), intent(in), asynchronous :: send(*)
            type(*), asynchronous :: recv(*)
            integer(c_int64_t), value :: count
            integer(c_int), value :: dtype, op
            integer(c_int32_t), value :: root
            type(c_ptr), intent(out) :: request
            integer(c_int) :: status
        end function
        function banyan_alltoall_init(comm, send, recv, count, dtype, request) bind(C) result(status)
            import
            type(c_ptr), value :: comm
            type(*), intent(in), asynchronous :: send(*)
            type(*), asynchronous :: recv(*)
            integer(c_int64_t), value :: count
            integer(c_int), value :: dtype
            type(c_ptr), intent(out) :: request
            integer(c_int) :: status
        end function
        function banyan_alltoallv_init(comm, send, send_counts, send_offsets, recv, &
                recv_counts, recv_offsets, dtype, request) bind(C) result(status)
            import
            type(c_ptr), value :: comm
            type(*), intent(in), asynchronous :: send(*)
            integer(c_int64_t), intent(in) :: send_counts(*)
            type(c_ptr), value :: send_offsets
            type(*), asynchronous :: recv(*)
            integer(c_int64_t), intent(in) :: recv_counts(*)
            type(c_ptr), value :: recv_offsets
            integer(c_int), value :: dtype
            type(c_ptr), intent(out) :: request
            integer(c_int) :: status
        end function
        function banyan_scatter_init(comm, send, recv, count, dtype, root, request) bind(C) result(status)
            import
            type(c_ptr), value :: comm
            type(*), intent(in), asynchronous :: send(*)
            type(*), asynchronous :: recv(*)
            integer(c_int64_t), value :: count
            integer(c_int), value :: dtype
            integer(c_int32_t), value :: root
            type(c_ptr), intent(out) :: request
            integer(c_int) :: status
        end function
        function banyan_scatterv_init(comm, send, counts, offsets, recv, count, dtype, root, &
                request) bind(C) result(status)
            import
            type(c_ptr), value :: comm
            type(*), intent(in), asynchronous :: send(*)
            integer(c_int64_t), intent(in) :: counts(*)
            type(c_ptr), value :: offsets
            type(*), asynchronous :: recv(*)
            integer(c_int64_t), value :: count
            integer(c_int), value :: dtype
            integer(c_int32_t), value :: root
            type(c_ptr), intent(out) :: request
            integer(c_int) :: status
        end function
        function banyan_gather_init(comm, send, recv, count, dtype, root, request) bind(C) result(status)
            import
            type(c_ptr), value :: comm
            type(*), intent(in), asynchronous :: send(*)
            type(*), asynchronous :: recv(*)
            integer(c_int64_t), value :: count
            integer(c_int), value :: dtype
            integer(c_int32_t), value :: root
            type(c_ptr), intent(out) :: request
            integer(c_int) :: status
        end function
        function banyan_gatherv_init(comm, send, count, recv, counts, offsets, dtype, root, &
                request) bind(C) result(status)
            import
            type(c_ptr), value :: comm
            type(*), intent(in), asynchronous :: send(*)
            integer(c_int64_t), value :: count
            type(*), asynchronous :: recv(*)
            integer(c_int64_t), intent(in) :: counts(*)
            type(c_ptr), value :: offsets
            integer(c_int), value :: dtype
            integer(c_int32_t), value :: root
            type(c_ptr), intent(out) :: request
            integer(c_int) :: status
        end function
        function banyan_barrier_init(comm, request) bind(C) result(status)
            import
            type(c_ptr), value :: comm
            type(c_ptr), intent(out) :: request
            integer(c_int) :: status
        end function
        function banyan_request_mode(request, mode) bind(C) result(status)
            import
            type(c_ptr), value :: request
            integer(c_int), value :: mode
            integer(c_int) :: status
        end function
        function banyan_post(request) bind(C) result(status)
            import
            type(c_ptr), value :: request
            integer(c_int) :: status
        end function
        function banyan_test(request, done) bind(C) result(status)
            import
            type(c_ptr), value :: request
            integer(c_int), intent(out) :: done
            integer(c_int) :: status
        end function
        function banyan_wait(request) bind(C) result(status)
            import
            type(c_ptr), value :: request
            integer(c_int) :: status
        end function
        function banyan_free(request) bind(C) result(status)
            import
            type(c_ptr), value :: request
            integer(c_int) :: status
        end function
    end interface

    ! Returns the BANYAN_ constant of an array's element type.
    interface banyan_dtype_of
        module procedure dtype_int8, dtype_int32, dtype_int64, dtype_real32, dtype_real64
    end interface
    private :: dtype_int8, dtype_int32, dtype_int64, dtype_real32, dtype_real64

contains

    pure integer(c_int) function dtype_int8(array)
        integer(int8), intent(in) :: array(..)
        dtype_int8 = BANYAN_I8 + 0 * rank(array)
    end function
    pure integer(c_int) function dtype_int32(array)
        integer(int32), intent(in) :: array(..)
        dtype_int32 = BANYAN_I32 + 0 * rank(array)
    end function
    pure integer(c_int) function dtype_int64(array)
        integer(int64), intent(in) :: array(..)
        dtype_int64 = BANYAN_I64 + 0 * rank(array)
    end function
    pure integer(c_int) function dtype_real32(array)
        real(real32), intent(in) :: array(..)
        dtype_real32 = BANYAN_F32 + 0 * rank(array)
    end function
    pure integer(c_int) function dtype_real64(array)
        real(real64), intent(in) :: array(..)
        dtype_real64 = BANYAN_F64 + 0 * rank(array)
    end function

    ! Returns the text of the last error in this thread: what failed, the limit and the remedy.
    function banyan_error_text() result(text)
        character(:), allocatable :: text
        character(kind=c_char), pointer :: bytes(:)
        type(c_ptr) :: address
        integer(c_size_t) :: i, length
        interface
            function last_error() bind(C, name="banyan_last_error") result(address)
                import
                type(c_ptr) :: address
            end function
            function length_of(text) bind(C, name="strlen") result(bytes)
                import
                type(c_ptr), value :: text
                integer(c_size_t) :: bytes
            end function
        end interface

        address = last_error()
        length = length_of(address)
        call c_f_pointer(address, bytes, [length])
        allocate (character(length) :: text)
        do i = 1, length
            text(i:i) = bytes(i)
        end do
    end function

    ! Ends the program with the text of the error unless status is BANYAN_OK.
    subroutine banyan_check(status)
        integer(c_int), intent(in) :: status

        if (status /= BANYAN_OK) then
            write (error_unit, "(a)") banyan_error_text()
            error stop 1
        end if
    end subroutine
end module
