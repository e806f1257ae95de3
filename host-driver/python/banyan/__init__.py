"""Collective operations that the network computes.

    import banyan, numpy

    with banyan.init() as comm:
        x = numpy.full(1000000, comm.rank, numpy.float32)
        comm.allreduce(x)                  # in place, on all ranks
        with comm.iallreduce(x) as request:
            ...                            # work that does not touch x
            request.wait()

A process is one rank of a job. ``banyan.init`` takes the job's table image, transport and other
settings from its arguments or from ``BANYAN_*``. Errors are exceptions below :class:`banyan.Error`,
with the library's text: what failed, the limit and the remedy.
"""
from ._buffers import DTYPES as _DTYPES
from ._comm import COLLECTIVES as _COLLECTIVES
from ._comm import MODES as _MODES
from ._comm import OPERATORS as _OPERATORS
from ._comm import Communicator, Fabric, Request, init, settings, supports, version
from ._errors import (
    AbortedError,
    AgainError,
    BusyError,
    ChecksumError,
    Error,
    ExistsError,
    FormatError,
    InputOutputError,
    InvalidError,
    LimitError,
    MemoryLimitError,
    MismatchError,
    NotFoundError,
    NotPermittedError,
    RangeError,
    StateError,
    TimedOutError,
    UnsupportedError,
    VersionError,
)

#: Names that ``dtype``, ``op``, ``mode`` and ``explain`` accept.
dtypes = tuple(_DTYPES)
operators = tuple(_OPERATORS)
modes = tuple(_MODES)
collectives = tuple(_COLLECTIVES)

__version__ = "0.1.0"
__all__ = [
    "AbortedError",
    "AgainError",
    "BusyError",
    "ChecksumError",
    "Communicator",
    "Error",
    "ExistsError",
    "Fabric",
    "FormatError",
    "InputOutputError",
    "InvalidError",
    "LimitError",
    "MemoryLimitError",
    "MismatchError",
    "NotFoundError",
    "NotPermittedError",
    "RangeError",
    "Request",
    "StateError",
    "TimedOutError",
    "UnsupportedError",
    "VersionError",
    "collectives",
    "dtypes",
    "init",
    "modes",
    "operators",
    "settings",
    "supports",
    "version",
]
