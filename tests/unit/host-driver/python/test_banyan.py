"""The Python package over a fabric in memory: every operation and element type, arrays of every kind
without copies, errors, and the agreement of its constants with the C header.

    test_banyan.py BUILD        (PYTHONPATH=host-driver/python); requires numpy
"""
import array
import gc
import os
import pathlib
import re
import socket
import subprocess
import sys
import tempfile
import threading
import time
import unittest

import banyan
import numpy
from banyan import _buffers, _comm, _errors

BUILD = pathlib.Path(sys.argv.pop(1) if len(sys.argv) > 1 else "build/release").resolve()
HEADER = pathlib.Path("host-driver/include/banyan/banyan.h").read_text()
NUMPY = [name for name in _buffers._ALIASES if hasattr(numpy, name) and name not in ("half", "float", "double")]
RANKS = 4


def run(*words):
    return subprocess.run([BUILD / "bin" / words[0], *words[1:]], check=True, capture_output=True, text=True)


EXCHANGES = """
import banyan, numpy
comm = banyan.init()
rank, size = comm.rank, comm.size
send = numpy.arange(size * 2, dtype="int32") + 100 * rank
recv = numpy.zeros_like(send)
comm.alltoall(send, recv)
assert all(recv[2 * r] == 100 * r + 2 * rank for r in range(size)), recv
both = send.copy()
comm.ialltoall(both).wait()
assert (both == recv).all(), both
counts = [r + 1 for r in range(size)]
some = numpy.concatenate([numpy.full(r + 1, 10 * rank + r, "float64") for r in range(size)])
got = numpy.zeros(size * (rank + 1))
comm.alltoallv(some, counts, got, [rank + 1] * size)
assert all(got[r * (rank + 1)] == 10 * r + rank for r in range(size)), got
share = numpy.zeros(2, "int32")
comm.scatter(send if rank == 1 else None, share, root=1)
assert share[0] == 100 + 2 * rank, share
comm.gather(share, recv if rank == 0 else None)
assert rank > 0 or (recv == numpy.arange(size * 2) + 100).all(), recv
own = numpy.zeros(rank + 1)
comm.scatterv(some if rank == 0 else None, counts, own)
assert (own == rank).all(), own
comm.igatherv(own, some if rank == 0 else None, counts).wait()
assert rank > 0 or some[-1] == size - 1, some
back = [3 * (size - 1 - r) for r in range(size)]
spread = numpy.full(size * 3, -1, "int32")
comm.alltoallv(send, [2] * size, spread, [2] * size, recv_offsets=back)
assert all(spread[back[r]] == 100 * r + 2 * rank for r in range(size)) and (spread[2::3] == -1).all(), spread
comm.iscatterv(spread if rank == 0 else None, [2] * size, share, offsets=back).wait()
assert (share == [100 * rank, 100 * rank + 1]).all(), share
spread[:] = -1
comm.gatherv(share, spread if rank == 1 else None, [2] * size, root=1, offsets=back)
assert rank != 1 or all(spread[back[r]] == 100 * r for r in range(size)), spread
for offsets, words in (([0] * (size + 1), "offsets has"), ([3 * size] * size, "its blocks end at element")):
    try:
        comm.alltoallv(send, [2] * size, spread, [2] * size, recv_offsets=offsets)
        raise SystemExit("wrong offsets were taken")
    except banyan.InvalidError as error:
        assert words in str(error), error
try:
    comm.alltoall(numpy.zeros(size + 1))
    raise SystemExit("unequal blocks were taken")
except banyan.InvalidError as error:
    assert "cannot share equally" in str(error)
comm.close()
"""


class World:
    """All ranks of one star in this process."""

    def __init__(self, folder):
        self.fabric = banyan.Fabric(folder)
        self.comms = [banyan.init(fabric=self.fabric, host=name) for name in self.fabric.hosts]

    def all(self, name, arguments, **more):
        """Run an operation on all ranks: arguments(rank) gives the arrays."""
        requests = [getattr(comm, "i" + name)(*arguments(comm.rank), **more) for comm in self.comms]
        for request in requests:
            assert request.wait(30)
            request.free()

    def close(self):
        for comm in self.comms:
            comm.close()
        self.fabric.close()


class BanyanTest(unittest.TestCase):
    @classmethod
    def setUpClass(cls):
        cls.scratch = tempfile.TemporaryDirectory()
        folder = pathlib.Path(cls.scratch.name)
        topology = folder / "star.json"
        topology.write_text(run("banyan", "topo", "star", "--hosts", str(RANKS)).stdout)
        plans = []
        for name, more in (("allreduce", []), ("reduce-scatter", []), ("allgather", []),
                           ("broadcast", ["--root", "host1"]), ("reduce", ["--root", "host2"])):  # fmt: skip
            plans.append(folder / (name + ".plan"))
            run("banyan", "plan", topology, "-c", name, "-o", plans[-1], *more)
        cls.tables = folder / "tables"
        run("banyan", "tables", topology, *plans, "-o", cls.tables)
        cls.world = World(cls.tables)

    @classmethod
    def tearDownClass(cls):
        cls.world.close()
        cls.scratch.cleanup()

    def test_exchanges_between_processes(self):
        with socket.socket() as free:
            free.bind(("127.0.0.1", 0))
            port = str(free.getsockname()[1])
        more = {"WORLD_SIZE": "3", "MASTER_ADDR": "127.0.0.1", "MASTER_PORT": port, "BANYAN_LOG": "0"}
        ranks = [
            subprocess.Popen([sys.executable, "-c", EXCHANGES], env={**os.environ, **more, "RANK": str(rank)})
            for rank in range(3)
        ]
        self.assertEqual([rank.wait(60) for rank in ranks], [0, 0, 0])

    def test_constants_are_those_of_the_header(self):
        here = {f"BANYAN_{name.upper()}": number
                for table in (_comm.OPERATORS, _comm.MODES, _comm.COLLECTIVES)
                for name, number in table.items()}  # fmt: skip
        here |= {f"BANYAN_{name.upper()}": number for name, (number, _) in _buffers.DTYPES.items()}
        here |= {f"BANYAN_{name.upper()}": number for number, name in _comm.PATHS.items()}
        there = dict(re.findall(r"^    (BANYAN_[A-Z0-9_]+) = (\d+)\b", HEADER, re.M))
        del there["BANYAN_OK"]
        self.assertEqual(here, {name: int(number) for name, number in there.items()})
        statuses = {int(number) for number in re.findall(r"BANYAN_E[A-Z]+ = (-\d+)", HEADER)}
        self.assertEqual(statuses, set(_errors.CLASSES))

    def test_sizes_of_structs_are_those_of_the_library(self):
        # Both calls compare the size field with that of the library.
        self.assertEqual(self.world.comms[0].explain("allreduce", 10)[0], "trees")

    def test_allreduce_of_every_type_is_right(self):
        for name in NUMPY:
            with self.subTest(dtype=name):
                arrays = [numpy.arange(1, 3001).astype(name) % 7 + rank for rank in range(RANKS)]
                arrays = [one.astype(name) for one in arrays]
                expected = sum(one.astype("float64") for one in arrays).astype("int64")
                self.world.all("allreduce", lambda rank: [arrays[rank]])
                for one in arrays:
                    self.assertTrue((one.astype("float64") == expected.astype(name).astype("float64")).all())

    def test_every_operator_is_right(self):
        numbers = [numpy.array([3, 5, 12, -9, 7], "int32") + rank for rank in range(RANKS)]
        expected = {
            "sum": numpy.add, "prod": numpy.multiply, "min": numpy.minimum, "max": numpy.maximum,
            "band": numpy.bitwise_and, "bor": numpy.bitwise_or, "bxor": numpy.bitwise_xor,
        }  # fmt: skip
        self.assertEqual(set(expected), set(banyan.operators))
        for op, function in expected.items():
            with self.subTest(op=op):
                results = [numpy.zeros(5, "int32") for _ in range(RANKS)]
                self.world.all("allreduce", lambda rank: [numbers[rank], results[rank]], op=op)
                for result in results:
                    numpy.testing.assert_array_equal(result, function.reduce(numbers))

    def test_reduce_scatter_and_allgather_share_by_rank(self):
        whole = [numpy.arange(RANKS * 1000, dtype="int64") * (rank + 1) for rank in range(RANKS)]
        shares = [numpy.zeros(1000, "int64") for _ in range(RANKS)]
        self.world.all("reduce_scatter", lambda rank: [whole[rank], shares[rank]])
        total = sum(whole)
        for rank in range(RANKS):
            numpy.testing.assert_array_equal(shares[rank], total[1000 * rank : 1000 * (rank + 1)])
        results = [numpy.zeros(RANKS * 1000, "int64") for _ in range(RANKS)]
        self.world.all("allgather", lambda rank: [shares[rank], results[rank]])
        for result in results:
            numpy.testing.assert_array_equal(result, total)

    def test_unequal_shares_follow_counts(self):
        counts = [5, 0, 700, 11]
        total = sum(counts)
        starts = [sum(counts[:rank]) for rank in range(RANKS)]
        whole = [numpy.arange(total, dtype="float32") + rank for rank in range(RANKS)]
        shares = [numpy.zeros(count, "float32") for count in counts]
        self.world.all("reduce_scatterv", lambda rank: [whole[rank], shares[rank], counts])
        expected = sum(whole)
        for rank, count in enumerate(counts):
            numpy.testing.assert_array_equal(shares[rank], expected[starts[rank] : starts[rank] + count])
        results = [numpy.zeros(total, "float32") for _ in range(RANKS)]
        self.world.all("allgatherv", lambda rank: [shares[rank], results[rank], counts])
        for result in results:
            numpy.testing.assert_array_equal(result, expected)

    def test_broadcast_and_reduce_have_roots(self):
        buffers = [numpy.full(999, rank, "uint8") for rank in range(RANKS)]
        self.world.all("broadcast", lambda rank: [buffers[rank], 1])
        for buffer in buffers:
            self.assertTrue((buffer == 1).all())
        numbers = [numpy.full(50, rank + 1, "float64") for rank in range(RANKS)]
        result = numpy.zeros(50)
        self.world.all("reduce", lambda rank: [numbers[rank], result if rank == 2 else None], root=2)
        self.assertTrue((result == 10).all())
        self.assertTrue((numbers[0] == 1).all())
        self.world.all("barrier", lambda rank: [])

    def test_a_request_is_posted_many_times(self):
        numbers = [numpy.ones(100, "int32") for _ in range(RANKS)]
        requests = [comm.allreduce_init(numbers[comm.rank]) for comm in self.world.comms]
        for _ in range(3):
            for request in requests:
                request.post()
            for request in requests:
                request.wait()
        self.assertTrue((numbers[3] == RANKS**3).all())
        for request in requests:
            request.free()
        with self.assertRaises(banyan.StateError):
            requests[0].post()

    def test_a_running_request_keeps_its_arrays(self):
        numbers = [bytearray(8) for _ in range(RANKS)]
        requests = [comm.iallreduce(numbers[comm.rank]) for comm in self.world.comms]
        with self.assertRaises(BufferError):
            numbers[0].extend(b"more")
        del numbers
        gc.collect()
        for request in requests:
            request.wait()
            request.free()

    def test_test_reports_the_end_and_wait_the_time(self):
        numbers = [numpy.ones(4, "int32") for _ in range(RANKS)]
        first = self.world.comms[0].iallreduce(numbers[0])
        self.assertFalse(first.test())
        self.assertFalse(first.wait(0.001))
        rest = [comm.iallreduce(numbers[comm.rank]) for comm in self.world.comms[1:]]
        first.wait()
        self.assertTrue(first.test())
        for request in rest:
            request.wait()

    def test_other_arrays_are_used_in_place(self):
        class Tensor:
            """DLPack alone, as of a library that has nothing else."""

            def __init__(self, base):
                self.base = base

            def __dlpack__(self, stream=None):
                return self.base.__dlpack__()

        for make, read in (
            (lambda: array.array("i", [1, 2, 3]), list),
            (lambda: memoryview(bytearray(b"\1\0\0\0\2\0\0\0\3\0\0\0")).cast("i"), lambda view: view.tolist()),
            (lambda: Tensor(numpy.array([1, 2, 3], "int32")), lambda tensor: tensor.base.tolist()),
        ):
            arrays = [make() for _ in range(RANKS)]
            self.world.all("allreduce", lambda rank: [arrays[rank]])
            self.assertEqual(read(arrays[1]), [4, 8, 12])

    def test_addresses_are_those_of_the_arrays(self):
        numbers = numpy.arange(12, dtype="float32")
        for part in (numbers, numbers[3:7], numbers.reshape(3, 4)[1], numbers[5:5]):
            address, count, number = _buffers.locate(part, "send", True)
            self.assertEqual((address, count, number), (part.ctypes.data, part.size, 9))
        self.assertEqual(_buffers.locate(b"abc", "send", False)[1:], (3, 2))

    def test_a_large_array_takes_no_more_processor_time_than_a_small_one(self):
        """1,000 calls' arguments of 64 MiB take less than one copy of them."""
        large, result = numpy.ones(1 << 24, "float32"), numpy.zeros(1 << 24, "float32")
        comm = self.world.comms[0]
        begin = time.thread_time()
        result[:] = large
        copied = time.thread_time()
        for _ in range(1000):
            arguments = comm._allreduce(large, result)
        end = time.thread_time()
        self.assertEqual(arguments[0], large.ctypes.data)
        self.assertLess(end - copied, copied - begin)

    def test_dtype_replaces_the_type_of_an_array(self):
        halves = [numpy.full(64, 0x3F80, "uint16") for _ in range(RANKS)]  # 1.0 in bf16
        self.world.all("allreduce", lambda rank: [halves[rank]], dtype="bf16")
        self.assertTrue((halves[0] == 0x4080).all())  # 4.0
        with self.assertRaisesRegex(banyan.UnsupportedError, "<u2 are not supported.*dtype="):
            self.world.comms[0].iallreduce(halves[0])
        with self.assertRaisesRegex(banyan.InvalidError, "dtype f32 has 4 bytes"):
            self.world.comms[0].iallreduce(halves[0], dtype="f32")

    def test_unsuitable_arrays_are_refused(self):
        comm = self.world.comms[0]
        good = numpy.zeros(8, "float32")
        frozen = numpy.zeros(8, "float32")
        frozen.flags.writeable = False
        for bad, words in (
            (numpy.zeros(8, "float32")[::2], "not contiguous"),
            (numpy.zeros((4, 2), "float32").T, "not contiguous"),
            (frozen, "read-only"),
            (bytes(8), "read-only"),
            (numpy.zeros(8, ">f4"), ">f4 are not supported"),
            (numpy.zeros(8, "complex64"), "not supported"),
            (numpy.zeros(8, bool), "not supported"),
            (memoryview(bytearray(8))[::2], "not contiguous"),
            ([1.0, 2.0], "list is not an array"),
            (None, "NoneType is not an array"),
        ):
            with self.subTest(words=words), self.assertRaisesRegex(banyan.Error, words):
                comm.iallreduce(bad)
        for call, words in (
            (lambda: comm.iallreduce(good, numpy.zeros(7, "float32")), "recv has 7 elements"),
            (lambda: comm.iallreduce(good, numpy.zeros(8, "int32")), "requires 8 of type 9"),
            (lambda: comm.iallreduce(good, good[1:]), "recv has 7"),
            (lambda: comm.iallreduce(good, op="mean"), "operator 'mean' is unknown; known are sum"),
            (lambda: comm.iallreduce(good, op="band"), "band"),
            (lambda: comm.iallgather(good, good), "requires 32"),
            (lambda: comm.ibroadcast(good, RANKS), "root is 4; a rank is from 0 to 3"),
            (lambda: comm.ireduce_scatterv(good, good, [1, 2]), "one number, 0 or more, for each of 4"),
            (lambda: comm.ireduce_scatterv(good, good, [9, -1, 0, 0]), "0 or more"),
            (lambda: comm.explain("scan"), "collective 'scan' is unknown"),
        ):
            with self.subTest(words=words), self.assertRaisesRegex(banyan.Error, words):
                call()

    def test_errors_are_classes_with_the_text_of_the_library(self):
        with self.assertRaisesRegex(banyan.NotFoundError, "/nowhere") as caught:
            banyan.Fabric("/nowhere")
        self.assertEqual(caught.exception.status, -7)
        with self.assertRaises(ValueError):
            banyan.init(fabric=self.world.fabric, host="host0", mode="quick")
        with self.assertRaises(banyan.NotFoundError):
            banyan.init(fabric=self.world.fabric, host="nobody")
        with self.assertRaisesRegex(banyan.BusyError, "host0"):
            banyan.init(fabric=self.world.fabric, host="host0")
        with self.assertRaises(banyan.InvalidError):
            banyan.init(fabric=self.world.fabric, host="host0", timeout=0)

    def test_ranks_that_differ_are_a_mismatch(self):
        world = World(self.tables)
        arrays = [numpy.ones(4, "float32" if rank else "int32") for rank in range(RANKS)]
        requests = [comm.iallreduce(arrays[comm.rank]) for comm in world.comms]
        failures = 0
        for request in requests:
            try:
                request.wait()
            except banyan.MismatchError:
                failures += 1
        self.assertEqual(failures, RANKS)
        self.assertIs(world.comms[0].error, banyan.MismatchError)
        world.close()

    def test_an_abort_of_another_thread_ends_a_wait(self):
        world = World(self.tables)
        request = world.comms[0].iallreduce(numpy.ones(4))
        thread = threading.Thread(target=world.comms[0].abort)
        thread.start()
        thread.join()
        with self.assertRaises(banyan.AbortedError):
            request.wait()
        world.close()
        with self.assertRaises(banyan.StateError):
            world.comms[0].barrier()
        with self.assertRaises(banyan.StateError):
            request.test()

    def test_communicators_describe_themselves(self):
        comm = self.world.comms[2]
        self.assertEqual((comm.rank, comm.size, comm.transport, comm.mode), (2, RANKS, "memory", "fast"))
        self.assertIn("rank 2 of 4", repr(comm))
        self.assertTrue(any(name.startswith("endpoint/") for name in comm.counters()))
        self.assertEqual(comm.explain("broadcast", 10, root=1)[0], "trees")
        path, reason = comm.explain("allreduce", 10, dtype="f32", op="prod", mode="exact")
        self.assertEqual(path, "nowhere", reason)
        self.assertIsNone(comm.error)
        self.assertTrue(any(count for *_, count, _ in self.world.fabric.links()))
        memory = comm.alloc(4096)
        numpy.frombuffer(memory, "float32")[:] = 1
        self.assertEqual(banyan.version(), banyan.__version__)
        self.assertTrue(banyan.supports("sum", numpy.float32, "exact"))
        self.assertFalse(banyan.supports("band", "f32"))
        self.assertEqual(banyan.settings()["BANYAN_TIMEOUT"][1], "default")

    def test_a_library_that_is_missing_is_named(self):
        environment = {**os.environ, "LIBBANYAN": "/nowhere/libbanyan.so.0"}
        result = subprocess.run(
            [sys.executable, "-c", "import banyan; banyan.version()"],
            env=environment, capture_output=True, text=True, check=False,
        )  # fmt: skip
        self.assertEqual(result.returncode, 1)
        self.assertIn("/nowhere/libbanyan.so.0 cannot be loaded", result.stderr)

    def test_a_program_that_ends_without_close_leaves_the_job(self):
        program = (
            "import banyan, sys\n"
            "fabric = banyan.Fabric(sys.argv[1])\n"
            "comms = [banyan.init(fabric=fabric, host=name) for name in fabric.hosts]\n"
            "request = comms[0].iallreduce(bytearray(8))\n"
        )
        result = subprocess.run(
            [sys.executable, "-c", program, str(self.tables)],
            capture_output=True, text=True, timeout=60, check=False,
        )  # fmt: skip
        self.assertEqual((result.returncode, result.stdout), (0, ""))
        self.assertNotIn("Traceback", result.stderr)


if __name__ == "__main__":
    outcome = unittest.main(exit=False, verbosity=1).result
    bad = len(outcome.failures) + len(outcome.errors)
    print(f"{outcome.testsRun - bad} passed, {bad} failed")
    sys.exit(bad > 0)
