! Reductions of a Fortran program without any call of banyan: the bindings of Fortran also reach the
! plugins.
program reductions
  use mpi
  implicit none
  integer, parameter :: n = 20011
  integer :: rank, ranks, ierr, i, wrong
  double precision, allocatable :: mine(:), total(:)
  real :: single(n)
  integer :: whole(n)

  call MPI_Init(ierr)
  call MPI_Comm_rank(MPI_COMM_WORLD, rank, ierr)
  call MPI_Comm_size(MPI_COMM_WORLD, ranks, ierr)
  allocate (mine(n), total(n))
  do i = 1, n
     mine(i) = dble(rank + 1) * i
     single(i) = real(rank)
     whole(i) = merge(i, 0, rank == ranks - 1)
  end do
  call MPI_Allreduce(mine, total, n, MPI_DOUBLE_PRECISION, MPI_SUM, MPI_COMM_WORLD, ierr)
  call MPI_Allreduce(MPI_IN_PLACE, single, n, MPI_REAL, MPI_MAX, MPI_COMM_WORLD, ierr)
  call MPI_Bcast(whole, n, MPI_INTEGER, ranks - 1, MPI_COMM_WORLD, ierr)
  wrong = 0
  do i = 1, n
     if (nint(total(i)) /= ranks * (ranks + 1) / 2 * i) wrong = wrong + 1
     if (nint(single(i)) /= ranks - 1) wrong = wrong + 1
     if (whole(i) /= i) wrong = wrong + 1
  end do
  call MPI_Barrier(MPI_COMM_WORLD, ierr)
  if (wrong /= 0) print '(a,i0,a)', 'WRONG Fortran: ', wrong, ' elements'
  if (wrong == 0 .and. rank == 0) print '(a)', 'right Fortran: allreduce, allreduce in place, bcast, barrier'
  flush (6)
  call MPI_Finalize(ierr)
  if (wrong /= 0) stop 1
end program reductions
