"""The C library: how it is found, and its functions as ctypes declares them.

Only the public interface of ``banyan/banyan.h`` is used. ``LIBBANYAN`` names the shared library;
if it is not set, the loader searches for ``libbanyan.so.0`` as for any program.
"""
import ctypes
import os
from ctypes import POINTER, byref, c_char, c_char_p, c_int, c_size_t, c_uint32, c_uint64, c_void_p

#: Headers of these versions are compatible with this module: major * 10000 + minor * 100.
_VERSION = 100
_NAME = "libbanyan.so.0"

ALLGATHER = ctypes.CFUNCTYPE(c_int, c_void_p, c_void_p, c_void_p, c_size_t)


class Bootstrap(ctypes.Structure):
    """``struct banyan_bootstrap``."""

    _fields_ = [
        ("size", c_size_t),
        ("rank", c_uint32),
        ("rank_count", c_uint32),
        ("context", c_void_p),
        ("allgather", ALLGATHER),
    ]


class Config(ctypes.Structure):
    """``struct banyan_config``."""

    _fields_ = [
        ("size", c_size_t),
        ("table", c_char_p),
        ("transport", c_char_p),
        ("timeout_ms", c_uint64),
        ("fabric", c_void_p),
        ("host", c_char_p),
        ("mode", c_char_p),
        ("launcher", c_char_p),
        ("bootstrap", POINTER(Bootstrap)),
    ]


class Query(ctypes.Structure):
    """``struct banyan_query``."""

    _fields_ = [
        ("size", c_size_t),
        ("collective", c_int),
        ("op", c_int),
        ("dtype", c_int),
        ("mode", c_int),
        ("root", c_uint32),
        ("count", c_uint64),
        ("counts", POINTER(c_uint64)),
        ("rank", c_uint32),
        ("rank_count", c_uint32),
        ("path", c_int),
        ("status", c_int),
        ("tree_count", c_uint32),
        ("packet_bytes", c_uint32),
        ("packet_count", c_uint64),
        ("trees", c_char * 256),
        ("round_count", c_uint64),
        ("predicted_ns", c_uint64),
        ("reason", c_char * 256),
    ]


class Link(ctypes.Structure):
    """``struct banyan_link``."""

    _fields_ = [
        ("from_node", c_char_p),
        ("from_port", c_char_p),
        ("to_node", c_char_p),
        ("to_port", c_char_p),
        ("packets", c_uint64),
        ("bytes", c_uint64),
    ]


_COUNTS = POINTER(c_uint64)
#: Arguments of each operation without the communicator, and without the request of its _init form.
OPERATIONS = {
    "allreduce": [c_void_p, c_void_p, c_uint64, c_int, c_int],
    "reduce_scatter": [c_void_p, c_void_p, c_uint64, c_int, c_int],
    "reduce_scatterv": [c_void_p, c_void_p, _COUNTS, c_int, c_int],
    "allgather": [c_void_p, c_void_p, c_uint64, c_int],
    "allgatherv": [c_void_p, c_void_p, _COUNTS, c_int],
    "broadcast": [c_void_p, c_uint64, c_int, c_uint32],
    "reduce": [c_void_p, c_void_p, c_uint64, c_int, c_int, c_uint32],
    "barrier": [],
    "alltoall": [c_void_p, c_void_p, c_uint64, c_int],
    "alltoallv": [c_void_p, _COUNTS, _COUNTS, c_void_p, _COUNTS, _COUNTS, c_int],
    "scatter": [c_void_p, c_void_p, c_uint64, c_int, c_uint32],
    "scatterv": [c_void_p, _COUNTS, _COUNTS, c_void_p, c_uint64, c_int, c_uint32],
    "gather": [c_void_p, c_void_p, c_uint64, c_int, c_uint32],
    "gatherv": [c_void_p, c_uint64, c_void_p, _COUNTS, _COUNTS, c_int, c_uint32],
}

_FUNCTIONS = {
    "version": (c_int, []),
    "strerror": (c_char_p, [c_int]),
    "last_error": (c_char_p, []),
    "supports_mode": (c_int, [c_int, c_int, c_int]),
    "setting": (c_int, [c_uint32] + [POINTER(c_char_p)] * 5),
    "fabric_open": (c_int, [c_char_p, POINTER(c_void_p)]),
    "fabric_close": (c_int, [c_void_p]),
    "fabric_host": (c_char_p, [c_void_p, c_uint32]),
    "fabric_link": (c_int, [c_void_p, c_uint32, POINTER(Link)]),
    "config_init": (None, [POINTER(Config)]),
    "init": (c_int, [POINTER(Config), POINTER(c_void_p)]),
    "finalize": (c_int, [c_void_p]),
    "comm_create": (c_int, [c_void_p, c_uint32, POINTER(c_void_p)]),
    "comm_split": (c_int, [c_void_p, c_int, c_int, POINTER(c_void_p)]),
    "comm_destroy": (c_int, [c_void_p]),
    "comm_rank": (c_uint32, [c_void_p]),
    "comm_size": (c_uint32, [c_void_p]),
    "comm_transport": (c_char_p, [c_void_p]),
    "comm_mode": (c_int, [c_void_p]),
    "comm_async_error": (c_int, [c_void_p]),
    "comm_counter": (c_int, [c_void_p, c_uint32, POINTER(c_char_p), POINTER(c_uint64)]),
    "query_init": (None, [POINTER(Query)]),
    "comm_query": (c_int, [c_void_p, POINTER(Query)]),
    "abort": (c_int, [c_void_p]),
    "alloc": (c_int, [c_void_p, c_size_t, POINTER(c_void_p)]),
    "dealloc": (c_int, [c_void_p, c_void_p]),
    "request_mode": (c_int, [c_void_p, c_int]),
    "post": (c_int, [c_void_p]),
    "test": (c_int, [c_void_p, POINTER(c_int)]),
    "wait": (c_int, [c_void_p]),
    "wait_for": (c_int, [c_void_p, c_uint64, POINTER(c_int)]),
    "free": (c_int, [c_void_p]),
}


class Library:
    """The functions of libbanyan, without their prefix; ``operation`` and ``start`` hold the collectives."""

    def __init__(self, path):
        handle = ctypes.CDLL(path)
        for name, (result, arguments) in _FUNCTIONS.items():
            function = getattr(handle, "banyan_" + name)
            function.restype = result
            function.argtypes = arguments
            setattr(self, name, function)
        self.operation = {}
        self.start = {}
        for name, arguments in OPERATIONS.items():
            blocking = getattr(handle, "banyan_" + name)
            blocking.restype = c_int
            blocking.argtypes = [c_void_p] + arguments
            self.operation[name] = blocking
            start = getattr(handle, "banyan_" + name + "_init")
            start.restype = c_int
            start.argtypes = [c_void_p] + arguments + [POINTER(c_void_p)]
            self.start[name] = start


_library = None


def library():
    """Return the library, which the first call loads.

    Raises ImportError if it cannot be loaded, or if its version differs from that of this module.
    """
    global _library
    if _library is None:
        path = os.environ.get("LIBBANYAN") or _NAME
        try:
            loaded = Library(path)
        except (OSError, AttributeError) as error:
            raise ImportError(
                f"banyan: {path} cannot be loaded ({error}); install libbanyan, or set LIBBANYAN to "
                f"the path of {_NAME}"
            ) from error
        version = loaded.version()
        if version // 100 * 100 != _VERSION:
            raise ImportError(
                f"banyan: {path} has version {version // 10000}.{version // 100 % 100}, and this module "
                f"requires {_VERSION // 10000}.{_VERSION // 100 % 100}; install both of one release"
            )
        _library = loaded
    return _library


__all__ = ["ALLGATHER", "Bootstrap", "Config", "Link", "Query", "byref", "library"]
