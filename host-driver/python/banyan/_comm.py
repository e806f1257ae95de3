"""Communicators, requests, and fabrics in memory."""
import atexit
import ctypes
import weakref
from ctypes import byref, c_char_p, c_int, c_uint64, c_void_p, pointer, sizeof

from . import _library
from ._buffers import dtype_named, held, locate, view_of
from ._errors import CLASSES, InvalidError, StateError, check, failure
from ._exchange import Exchanges
from ._launch import rendezvous

#: Operators: name -> value of banyan_op_t.
OPERATORS = {"sum": 1, "prod": 2, "min": 3, "max": 4, "band": 5, "bor": 6, "bxor": 7}
MODES = {"fast": 1, "det": 2, "exact": 3}
COLLECTIVES = {
    "allreduce": 1,
    "reduce_scatter": 2,
    "allgather": 3,
    "broadcast": 4,
    "reduce": 5,
    "barrier": 6,
    "alltoall": 16,
    "scatter": 17,
    "gather": 18,
}
PATHS = {1: "trees", 2: "hosts", 3: "nowhere"}
_WAIT_US = 100000  # a wait returns to Python this often, so that signals are handled

_open = weakref.WeakSet()


def _choice(table, what, value):
    try:
        return table[value]
    except (KeyError, TypeError):
        raise InvalidError(f"{what} {value!r} is unknown; known are {', '.join(table)}", -1) from None


def _text(value):
    return None if value is None else str(value).encode()


class Fabric:
    """All hosts and switches of a folder of table images, in this process.

    No privileges are needed. Time is simulated. Start the operation of every rank before you wait
    for any of them: waiting for one advances all.
    """

    def __init__(self, folder):
        self._handle = c_void_p()
        check(_library.library().fabric_open(_text(folder), byref(self._handle)))

    @property
    def hosts(self):
        """Names of the hosts, in the order of ranks."""
        lib, names = _library.library(), []
        while (name := lib.fabric_host(self._alive(), len(names))) is not None:
            names.append(name.decode())
        return names

    def links(self):
        """Yield (from, port, to, port, packets, bytes) for each direction of each cable."""
        link, index = _library.Link(), 0
        while _library.library().fabric_link(self._alive(), index, byref(link)) == 0:
            yield (
                link.from_node.decode(),
                link.from_port.decode(),
                link.to_node.decode(),
                link.to_port.decode(),
                link.packets,
                link.bytes,
            )
            index += 1

    def _alive(self):
        if not self._handle:
            raise StateError("the fabric is closed", -16)
        return self._handle

    def close(self):
        """Free the fabric. Raises BusyError while a communicator uses it."""
        if self._handle:
            check(_library.library().fabric_close(self._handle))
            self._handle = c_void_p()

    def __enter__(self):
        return self

    def __exit__(self, *_):
        self.close()


class Request:
    """One operation: posted once or many times, one post at a time.

    The request keeps the arrays of its operation. They must not change between ``post`` and the end
    of the operation. Thread: that of the communicator.
    """

    def __init__(self, comm, name, handle, arrays):
        self._comm, self._name, self._handle, self._arrays = comm, name, handle, arrays

    def _alive(self):
        if not self._handle or not self._comm._handle:
            raise StateError(f"this {self._name} is freed", -16)
        return self._handle

    @property
    def mode(self):
        raise AttributeError("mode can only be set")

    @mode.setter
    def mode(self, mode):
        check(self._comm._lib.request_mode(self._alive(), _choice(MODES, "mode", mode)))

    def post(self):
        """Start the operation. Returns the request. Raises BusyError if it runs already."""
        check(self._comm._lib.post(self._alive()))
        self._comm._running.add(self)
        return self

    def _ended(self, status, done):
        if done or status != 0:
            self._comm._running.discard(self)
        check(status)
        return bool(done)

    def test(self):
        """Return whether the operation has ended, without blocking; raise its error."""
        done = c_int(0)
        status = self._comm._lib.test(self._alive(), byref(done))
        return self._ended(status, done.value)

    def wait(self, timeout=None):
        """Wait for the end of the operation, at most ``timeout`` seconds; raise its error.

        Returns True if it has ended. Signals are handled meanwhile.
        """
        done = c_int(0)
        left = None if timeout is None else max(0, int(timeout * 1e6))
        while True:
            part = _WAIT_US if left is None else min(left, _WAIT_US)
            status = self._comm._lib.wait_for(self._alive(), part, byref(done))
            if self._ended(status, done.value):
                return True
            if left is not None:
                left -= part
                if left <= 0:
                    return False

    def free(self):
        """Free the request. Raises BusyError while it runs."""
        if self._handle and self._comm._handle:
            check(self._comm._lib.free(self._handle))
        self._handle = None
        self._arrays = ()

    def __enter__(self):
        return self

    def __exit__(self, *_):
        self.free()

    def __del__(self):
        if self._handle and self._comm._handle and self not in self._comm._running:
            self._comm._lib.free(self._handle)
            self._handle = None


UNDEFINED = -32766  # BANYAN_UNDEFINED


class Communicator(Exchanges):
    """One rank of a job. Create it with :func:`banyan.init`; use it as a context manager.

    Arrays are numpy arrays, tensors (DLPack) or objects with the buffer protocol; they are used in
    place, never copied. ``op`` is "sum", "prod", "min", "max", "band", "bor" or "bxor". ``dtype``
    replaces an array's own element type, for example "bf16" for an array of uint16. All ranks must
    call the same operations in the same order. Only one thread at a time may use a communicator,
    except for :meth:`abort` and :attr:`error`.

    Each operation has three forms: ``allreduce`` blocks; ``iallreduce`` starts it and returns a
    :class:`Request`; ``allreduce_init`` returns a request to post many times.
    """

    def __init__(self, config, keep, job):
        self._lib = _library.library()
        self._handle, self._context, self._keep = None, None, keep
        self._running = set()
        context, handle = c_void_p(), c_void_p()
        check(self._lib.init(byref(config), byref(context)))
        status = self._lib.comm_create(context, job, byref(handle))
        if status != 0:
            error = failure(status)
            self._lib.finalize(context)
            raise error
        self._context = context
        self._take(handle)

    def _take(self, handle):
        self._handle = handle
        self.rank = self._lib.comm_rank(handle)
        self.size = self._lib.comm_size(handle)
        _open.add(self)

    def split(self, color, key=0):
        """Return a communicator of the ranks with the same color, in the order of key.

        Collective over this communicator. Ranks of one host share its memory; on several hosts it
        requires a controller, which gives it trees of its own.
        A rank with color None is in none, and gets None. Close it before this one.
        """
        handle = c_void_p()
        check(self._lib.comm_split(self._alive(), UNDEFINED if color is None else color, key, byref(handle)))
        if not handle:
            return None
        made = object.__new__(Communicator)
        made._lib, made._context, made._keep, made._running = self._lib, None, self, set()
        made._take(handle)
        return made

    def dup(self):
        """Return a communicator of the same ranks, with an order of calls of its own."""
        return self.split(0, self.rank)

    # -- state

    def _alive(self):
        if not self._handle:
            raise StateError("the communicator is closed", -16)
        return self._handle

    @property
    def transport(self):
        """Name of the transport: "afxdp", "udp", "shm", "memory", "host" or "tcp"."""
        return self._lib.comm_transport(self._alive()).decode()

    @property
    def mode(self):
        """Default mode of requests: "fast", "det" or "exact"."""
        number = self._lib.comm_mode(self._alive())
        return next(name for name, value in MODES.items() if value == number)

    @property
    def error(self):
        """The first fatal error's exception class, or None. After it only :meth:`close` is possible."""
        status = self._lib.comm_async_error(self._alive())
        return CLASSES.get(status) if status else None

    def counters(self):
        """Return the counters by name, such as "port/eth0/rx_bytes"."""
        found, name, value = {}, c_char_p(), c_uint64()
        while self._lib.comm_counter(self._alive(), len(found), byref(name), byref(value)) == 0:
            found[name.value.decode()] = value.value
        return found

    def explain(self, collective, count=0, dtype="f32", op="sum", root=0, mode=None):
        """Return (path, reason) of an operation: path is "trees", "hosts" or "nowhere"."""
        query = _library.Query()
        self._lib.query_init(byref(query))
        query.collective = _choice(COLLECTIVES, "collective", collective)
        query.op = _choice(OPERATORS, "operator", op)
        query.dtype = dtype_named(dtype)[0]
        query.mode = 0 if mode is None else _choice(MODES, "mode", mode)
        query.root, query.count = root, count
        check(self._lib.comm_query(self._alive(), byref(query)))
        return PATHS[query.path], query.reason.decode()

    def abort(self):
        """End all operations with AbortedError. Any thread."""
        check(self._lib.abort(self._alive()))

    def alloc(self, nbytes):
        """Return a writable memoryview of page-aligned memory, which a switch on this machine reads in place.

        Use it as ``numpy.frombuffer(comm.alloc(n), dtype)``. It is valid until the communicator is
        closed.
        """
        memory = c_void_p()
        check(self._lib.alloc(self._alive(), nbytes, byref(memory)))
        return view_of(memory.value, nbytes)

    def close(self):
        """Leave the job. Ends operations that still run. Does nothing if already closed."""
        if self._handle:
            handle, self._handle = self._handle, None
            self._running.clear()
            status = self._lib.comm_destroy(handle)
            error = failure(status) if status else None
            if self._context:
                self._lib.finalize(self._context)
            _open.discard(self)
            if error:
                raise error

    def __enter__(self):
        return self

    def __exit__(self, *_):
        self.close()

    def __repr__(self):
        return f"<banyan.Communicator rank {self.rank} of {self.size}{'' if self._handle else ', closed'}>"

    # -- arguments of the operations, as the C functions take them

    def _allreduce(self, send, recv=None, op="sum", dtype=None):
        source, count, number = locate(send, "send", recv is None, dtype)
        target = source
        if recv is not None:
            target = self._second(recv, "recv", count, number, dtype)
        return source, target, count, number, _choice(OPERATORS, "operator", op)

    @staticmethod
    def _second(array, name, count, number, dtype, writable=True):
        address, have, other = locate(array, name, writable, dtype)
        if have != count or other != number:
            raise InvalidError(
                f"{name} has {have} elements of type {other}, and the operation requires {count} of type "
                f"{number} (banyan_dtype_t)",
                -1,
            )
        return address

    def _reduce_scatter(self, send, recv, op="sum", dtype=None):
        target, count, number = locate(recv, "recv", True, dtype)
        source = self._second(send, "send", count * self.size, number, dtype, False)
        return source, target, count, number, _choice(OPERATORS, "operator", op)

    def _reduce_scatterv(self, send, recv, counts, op="sum", dtype=None):
        shares = self._counts(counts)
        source, _, number = locate(send, "send", False, dtype)
        self._second(send, "send", sum(counts), number, dtype, False)
        target = self._second(recv, "recv", counts[self.rank], number, dtype)
        return source, target, shares, number, _choice(OPERATORS, "operator", op)

    def _allgather(self, send, recv, dtype=None):
        source, count, number = locate(send, "send", False, dtype)
        return source, self._second(recv, "recv", count * self.size, number, dtype), count, number

    def _allgatherv(self, send, recv, counts, dtype=None):
        shares = self._counts(counts)
        target, _, number = locate(recv, "recv", True, dtype)
        self._second(recv, "recv", sum(counts), number, dtype)
        source = self._second(send, "send", counts[self.rank], number, dtype, False)
        return source, target, shares, number

    def _counts(self, counts, name="counts"):
        if len(counts) != self.size or any(int(count) < 0 for count in counts):
            raise InvalidError(
                f"{name} has {len(counts)} elements; it requires one number, 0 or more, for each of "
                f"{self.size} ranks",
                -1,
            )
        return (c_uint64 * self.size)(*counts)

    def _broadcast(self, buffer, root=0, dtype=None):
        address, count, number = locate(buffer, "buffer", self.rank != root, dtype)
        return address, count, number, self._root(root)

    def _reduce(self, send, recv=None, op="sum", root=0, dtype=None):
        root = self._root(root)
        source, count, number = locate(send, "send", recv is None and self.rank == root, dtype)
        target = source
        if recv is not None and self.rank == root:
            target = self._second(recv, "recv", count, number, dtype)
        return source, target, count, number, _choice(OPERATORS, "operator", op), root

    def _root(self, root):
        if not 0 <= root < self.size:
            raise InvalidError(f"root is {root}; a rank is from 0 to {self.size - 1}", -1)
        return root

    def _barrier(self):
        return ()

    def _start(self, name, arrays, arguments):
        handle = c_void_p()
        check(self._lib.start[name](self._alive(), *arguments, byref(handle)))
        return Request(self, name, handle, tuple(held(array) for array in arrays if array is not None))

    # -- the operations

    def allreduce(self, send, recv=None, op="sum", dtype=None):
        """Reduce ``send`` [count] of all ranks into ``recv`` [count] of all ranks; without recv, in place."""
        arguments = self._allreduce(send, recv, op, dtype)
        status = self._lib.operation["allreduce"](self._alive(), *arguments)
        if status:
            check(status)

    def reduce_scatter(self, send, recv, op="sum", dtype=None):
        """Reduce ``send`` [size * count] of all ranks; rank r receives share r in ``recv`` [count]."""
        check(
            self._lib.operation["reduce_scatter"](self._alive(), *self._reduce_scatter(send, recv, op, dtype))
        )

    def reduce_scatterv(self, send, recv, counts, op="sum", dtype=None):
        """Like reduce_scatter; rank r receives counts[r] elements."""
        arguments = self._reduce_scatterv(send, recv, counts, op, dtype)
        check(self._lib.operation["reduce_scatterv"](self._alive(), *arguments))

    def allgather(self, send, recv, dtype=None):
        """Concatenate ``send`` [count] of all ranks, in the order of ranks, into ``recv`` [size * count]."""
        check(self._lib.operation["allgather"](self._alive(), *self._allgather(send, recv, dtype)))

    def allgatherv(self, send, recv, counts, dtype=None):
        """Like allgather; rank r sends counts[r] elements."""
        check(self._lib.operation["allgatherv"](self._alive(), *self._allgatherv(send, recv, counts, dtype)))

    def broadcast(self, buffer, root=0, dtype=None):
        """Copy ``buffer`` of ``root`` to ``buffer`` of all ranks."""
        check(self._lib.operation["broadcast"](self._alive(), *self._broadcast(buffer, root, dtype)))

    def reduce(self, send, recv=None, op="sum", root=0, dtype=None):
        """Reduce ``send`` [count] of all ranks into ``recv`` [count] of ``root``; without recv, in place."""
        check(self._lib.operation["reduce"](self._alive(), *self._reduce(send, recv, op, root, dtype)))

    def barrier(self):
        """Return when all ranks have entered the barrier."""
        check(self._lib.operation["barrier"](self._alive()))

    def allreduce_init(self, send, recv=None, op="sum", dtype=None):
        """Return a request of an allreduce, which :meth:`Request.post` starts."""
        return self._start("allreduce", (send, recv), self._allreduce(send, recv, op, dtype))

    def reduce_scatter_init(self, send, recv, op="sum", dtype=None):
        """Return a request of a reduce-scatter."""
        return self._start("reduce_scatter", (send, recv), self._reduce_scatter(send, recv, op, dtype))

    def reduce_scatterv_init(self, send, recv, counts, op="sum", dtype=None):
        """Return a request of a reduce-scatter with unequal shares."""
        arguments = self._reduce_scatterv(send, recv, counts, op, dtype)
        return self._start("reduce_scatterv", (send, recv), arguments)

    def allgather_init(self, send, recv, dtype=None):
        """Return a request of an allgather."""
        return self._start("allgather", (send, recv), self._allgather(send, recv, dtype))

    def allgatherv_init(self, send, recv, counts, dtype=None):
        """Return a request of an allgather with unequal shares."""
        return self._start("allgatherv", (send, recv), self._allgatherv(send, recv, counts, dtype))

    def broadcast_init(self, buffer, root=0, dtype=None):
        """Return a request of a broadcast."""
        return self._start("broadcast", (buffer,), self._broadcast(buffer, root, dtype))

    def reduce_init(self, send, recv=None, op="sum", root=0, dtype=None):
        """Return a request of a reduce."""
        return self._start("reduce", (send, recv), self._reduce(send, recv, op, root, dtype))

    def barrier_init(self):
        """Return a request of a barrier."""
        return self._start("barrier", (), ())

    def iallreduce(self, send, recv=None, op="sum", dtype=None):
        """Start an allreduce; return its request."""
        return self.allreduce_init(send, recv, op, dtype).post()

    def ireduce_scatter(self, send, recv, op="sum", dtype=None):
        """Start a reduce-scatter; return its request."""
        return self.reduce_scatter_init(send, recv, op, dtype).post()

    def ireduce_scatterv(self, send, recv, counts, op="sum", dtype=None):
        """Start a reduce-scatter with unequal shares; return its request."""
        return self.reduce_scatterv_init(send, recv, counts, op, dtype).post()

    def iallgather(self, send, recv, dtype=None):
        """Start an allgather; return its request."""
        return self.allgather_init(send, recv, dtype).post()

    def iallgatherv(self, send, recv, counts, dtype=None):
        """Start an allgather with unequal shares; return its request."""
        return self.allgatherv_init(send, recv, counts, dtype).post()

    def ibroadcast(self, buffer, root=0, dtype=None):
        """Start a broadcast; return its request."""
        return self.broadcast_init(buffer, root, dtype).post()

    def ireduce(self, send, recv=None, op="sum", root=0, dtype=None):
        """Start a reduce; return its request."""
        return self.reduce_init(send, recv, op, root, dtype).post()

    def ibarrier(self):
        """Start a barrier; return its request."""
        return self.barrier_init().post()


def _bootstrap(rank, size, allgather):
    """Return the C struct for a bootstrap function ``allgather(mine: bytes) -> [bytes of rank 0, ...]``."""

    def call(_context, mine, all_, nbytes):
        try:
            parts = allgather(ctypes.string_at(mine, nbytes))
            if len(parts) != size or any(len(part) != nbytes for part in parts):
                return 1
            ctypes.memmove(all_, b"".join(parts), nbytes * size)
            return 0
        except Exception:  # an exception cannot pass through the C library
            import traceback

            traceback.print_exc()
            return 1

    found = _library.Bootstrap(sizeof(_library.Bootstrap), rank, size, None, _library.ALLGATHER(call))
    return found


def init(
    table=None,
    job=0,
    transport=None,
    timeout=None,
    mode=None,
    launcher=None,
    bootstrap=None,
    fabric=None,
    host=None,
):
    """Join a job and return its :class:`Communicator`.

    What is not given is taken from the settings ``BANYAN_*`` (``banyan-perf --settings`` lists them), so
    programs that ``banyan lab run``, ``banyan-run``, mpirun, srun or torchrun start need no
    arguments.

    table      path of this host's table image, or of a folder with HOSTNAME.table
    job        number of the job in the table; 0: the only one
    transport  "auto", "afxdp", "udp" or "shm"
    timeout    seconds without progress after which an operation fails
    mode       "fast", "det" or "exact"
    launcher   "auto", "env", "pmix", "pmi" or "none": how ranks find each other
    bootstrap  (rank, size, allgather): replaces the launcher; allgather(mine: bytes) returns the bytes
               of all ranks, in their order
    fabric     a :class:`Fabric`: the rank lives in it, as ``host``
    """
    lib = _library.library()
    config = _library.Config()
    lib.config_init(byref(config))
    config.table, config.transport, config.mode = _text(table), _text(transport), _text(mode)
    config.launcher, config.host = _text(launcher), _text(host)
    if timeout is not None:
        if not 0.001 <= timeout < 2**31:
            raise InvalidError(f"timeout is {timeout} s; it is from 0.001 to {2**31} s", -1)
        config.timeout_ms = int(timeout * 1000)
    if fabric is not None:
        config.fabric = fabric._alive()
    elif bootstrap is None and launcher is None:
        bootstrap = rendezvous()
    keep = [fabric]
    if bootstrap is not None:
        struct = _bootstrap(*bootstrap)
        config.bootstrap = pointer(struct)
        keep.append(struct)
    return Communicator(config, keep, job)


def supports(op, dtype, mode="fast"):
    """Return whether the network can reduce ``dtype`` with ``op`` in ``mode``."""
    numbers = _choice(MODES, "mode", mode), _choice(OPERATORS, "operator", op), dtype_named(dtype)[0]
    return bool(_library.library().supports_mode(*numbers))


def version():
    """Return the version of the library as "major.minor.patch"."""
    number = _library.library().version()
    return f"{number // 10000}.{number // 100 % 100}.{number % 100}"


def settings():
    """Return the settings as {name: (value, origin)}; origin is "default", "environment" or a file."""
    found, texts = {}, [c_char_p() for _ in range(5)]
    while _library.library().setting(len(found), *(byref(text) for text in texts)) == 0:
        found[texts[0].value.decode()] = (texts[3].value.decode(), texts[4].value.decode())
    return found


@atexit.register
def _close_all():
    """Leave all jobs, so that other ranks are not kept waiting by a program that ends without close."""
    for comm in list(_open):
        try:
            comm.close()
        except Exception as error:
            import sys

            print(f"banyan: at exit: {error}", file=sys.stderr)


__all__ = ["Communicator", "Fabric", "Request", "init", "settings", "supports", "version"]
