"""A rank in Python, for inject.py: the sum of arrays, blocking and in flight. rank.py LIBRARY"""
import array
import os
import sys

os.environ["LIBBANYAN"] = sys.argv[1]
sys.path.insert(0, os.path.join(os.path.dirname(os.path.abspath(__file__)), "../../host-driver/python"))

import banyan  # pylint: disable=wrong-import-position

with banyan.init() as comm:
    arrays = [array.array("f", [comm.rank + call + i for i in range(3001)]) for call in range(4)]
    comm.allreduce(arrays[0])
    requests = [comm.iallreduce(data) for data in arrays[1:]]
    for request in requests:
        request.wait()
    for call, data in enumerate(arrays):
        assert list(data) == [1 + 2 * (call + i) for i in range(3001)]
    print("right")
