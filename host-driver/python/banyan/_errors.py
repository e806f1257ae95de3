"""Exceptions: one class for each status of libbanyan, each with the text of the library."""
from ._library import library


class Error(Exception):
    """A function of libbanyan failed.

    ``status`` is the negative number of ``banyan_status_t``; the text names the object, the limit
    and the remedy.
    """

    status = 0

    def __init__(self, text, status=None):
        super().__init__(text)
        if status is not None:
            self.status = status


class InvalidError(Error, ValueError):
    """An argument is out of its range."""

    status = -1


class MemoryLimitError(Error, MemoryError):
    """Insufficient memory."""

    status = -2


class LimitError(Error):
    """A limit is exceeded."""

    status = -3


class FormatError(Error):
    """Malformed table image."""

    status = -4


class ChecksumError(Error):
    """Corrupted table image, or corrupted data in a buffer."""

    status = -5


class VersionError(Error):
    """Unsupported version of a table image."""

    status = -6


class NotFoundError(Error):
    """No such file, job, interface or host."""

    status = -7


class ExistsError(Error):
    """The object exists already."""

    status = -8


class BusyError(Error):
    """The object is in use."""

    status = -9


class AgainError(Error):
    """Not possible now: 64 operations run, for example."""

    status = -10


class TimedOutError(Error, TimeoutError):
    """No progress in time: a switch or a rank does not respond."""

    status = -11


class MismatchError(Error):
    """The ranks have posted different operations."""

    status = -12


class UnsupportedError(Error):
    """This combination is not supported."""

    status = -13


class NotPermittedError(Error):
    """The operating system does not permit it."""

    status = -14


class InputOutputError(Error):
    """Input or output failed."""

    status = -15


class StateError(Error):
    """The function is not valid in this state."""

    status = -16


class AbortedError(Error):
    """The communicator was aborted."""

    status = -17


class RangeError(Error):
    """A number cannot be represented."""

    status = -18


CLASSES = {
    one.status: one
    for one in (
        InvalidError, MemoryLimitError, LimitError, FormatError, ChecksumError, VersionError, NotFoundError,
        ExistsError, BusyError, AgainError, TimedOutError, MismatchError, UnsupportedError, NotPermittedError,
        InputOutputError, StateError, AbortedError, RangeError,
    )
}  # fmt: skip


def failure(status):
    """Return the exception for ``status``, with the text of the last error in this thread."""
    text = library().last_error().decode("utf-8", "replace")
    if not text:
        text = library().strerror(status).decode("utf-8", "replace")
    return CLASSES.get(status, Error)(text, status)


def check(status):
    """Raise the exception for ``status`` unless it is 0."""
    if status != 0:
        raise failure(status)
