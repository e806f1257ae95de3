"""Times an allreduce of 8 bytes through the Python package; rank 0 prints the mean in microseconds."""
import sys
import time

import banyan
import numpy

calls = int(sys.argv[1])
with banyan.init() as comm:
    value = numpy.ones(2, numpy.float32)
    result = numpy.empty(2, numpy.float32)
    for _ in range(calls // 10):
        comm.allreduce(value, result)
    start = time.perf_counter()
    for _ in range(calls):
        comm.allreduce(value, result)
    end = time.perf_counter()
    assert (result == comm.size).all()
    # What the package adds to the C function, without the network: one refused call of each kind.
    function, arguments = comm._lib.operation["allreduce"], comm._allreduce(value, result)
    before = time.perf_counter()
    for _ in range(calls):
        comm._allreduce(value, result)
    middle = time.perf_counter()
    for _ in range(calls):
        function(None, *arguments)
    after = time.perf_counter()
    if comm.rank == 0:
        print(f"call {(end - start) / calls * 1e6:.2f}")
        print(f"arguments {(middle - before) / calls * 1e6:.2f} foreign {(after - middle) / calls * 1e6:.2f}")
