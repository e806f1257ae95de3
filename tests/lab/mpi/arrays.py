"""mpi4py and numpy, as Debian packages them: nothing here knows banyan."""
import sys

import numpy
from mpi4py import MPI

world = MPI.COMM_WORLD
rank, size = world.Get_rank(), world.Get_size()
count = 100_003
mine = numpy.arange(count, dtype=numpy.float64) * (rank + 1)
total = numpy.empty_like(mine)
world.Allreduce(mine, total, op=MPI.SUM)
right = bool((total == numpy.arange(count) * (size * (size + 1) // 2)).all())

blocks = numpy.empty((size, count), dtype=numpy.int32)
world.Allgather(numpy.full(count, rank, dtype=numpy.int32), blocks)
right &= all((blocks[r] == r).all() for r in range(size))

matrix = numpy.zeros((300, 200), dtype=numpy.float32)
if rank == 1:
    matrix[:] = 7
world.Bcast(matrix, root=1)
right &= bool((matrix == 7).all())

share = numpy.empty(count, dtype=numpy.int64)
world.Reduce_scatter_block(numpy.ones(count * size, dtype=numpy.int64), share, op=MPI.SUM)
right &= bool((share == size).all())

# Several non-blocking calls at once, completed together.
sums = [numpy.empty(count, dtype=numpy.int64) for _ in range(3)]
parts = [numpy.full(count, rank + i, dtype=numpy.int64) for i in range(3)]
requests = [world.Iallreduce(parts[i], sums[i]) for i in range(3)]
requests.append(world.Ibarrier())
world.Allreduce(MPI.IN_PLACE, mine)
MPI.Request.Waitall(requests)
right &= all((sums[i] == size * (size - 1) // 2 + size * i).all() for i in range(3))
right &= bool((mine == total).all())

# Blocks with gaps; mpi4py 3.1 frees the lists of counts and positions when the call has started.
for _ in range(20):
    gaps = numpy.full(2 * size, -1, dtype=numpy.int64)
    request = world.Iallgatherv(numpy.array([rank]), [gaps, [1] * size, list(range(0, 2 * size, 2)), MPI.INT64_T])
    others = [list(range(i)) for i in range(100)] # takes the freed memory
    request.Wait()
    right &= bool((gaps[::2] == numpy.arange(size)).all() and (gaps[1::2] == -1).all()) and len(others) == 100

# Objects are sent pickled, with different lengths.
right &= world.bcast({"from": 0} if rank == 0 else None) == {"from": 0}
right &= world.allreduce(rank) == size * (size - 1) // 2
world.Barrier()
if rank == 0 and right:
    print("right mpi4py: Allreduce, Iallreduce, Allgather, Iallgatherv, Bcast, Reduce_scatter_block, bcast, allreduce, Barrier")
sys.exit(0 if right else 1)
