! The part of mixed.c that calls MPI by the names of mpi_f08: the same collectives as the part in C.
subroutine collectives_f08(buffer, count, total) bind(C)
  use, intrinsic :: iso_c_binding
  use mpi_f08
  implicit none
  integer(c_int), value :: count
  integer(c_int) :: buffer(count), total(count)

  call MPI_Barrier(MPI_COMM_WORLD)
  call MPI_Bcast(buffer, count, MPI_INTEGER, 0, MPI_COMM_WORLD)
  call MPI_Allreduce(buffer, total, count, MPI_INTEGER, MPI_SUM, MPI_COMM_WORLD)
  call MPI_Barrier(MPI_COMM_WORLD)
end subroutine collectives_f08
