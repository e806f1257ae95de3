"""The average of an array over all ranks, blocking and non-blocking; checks its results.

    banyan lab run fabric.json -c allreduce,broadcast -- python3 average.py
"""
import banyan
import numpy

with banyan.init() as comm:
    ranks = comm.size
    gradient = numpy.arange(1 << 18, dtype=numpy.float32) + comm.rank
    comm.allreduce(gradient)  # in place
    gradient /= ranks
    expected = numpy.arange(1 << 18, dtype=numpy.float32) + (ranks - 1) / 2
    assert (gradient == expected).all()

    # Four buckets in flight; each is used as soon as it has arrived.
    buckets = numpy.ones((4, 1 << 16), numpy.float32)
    running = [comm.iallreduce(bucket) for bucket in buckets]
    for bucket, request in zip(buckets, running):
        request.wait()
        assert (bucket == ranks).all()

    seed = numpy.array([42 if comm.rank == 0 else 0])
    comm.broadcast(seed)
    assert seed[0] == 42
    print(f"rank {comm.rank} of {ranks} over {comm.transport}: average {gradient[0]}, seed {seed[0]}")
