"""Arrays as addresses: finds address, element count and type of an array without a copy.

Accepted are numpy arrays (``__array_interface__``), arrays of GPUs (``__cuda_array_interface__``),
tensors (``__dlpack__``: PyTorch, JAX, CuPy) and every object with the buffer protocol (``bytearray``,
``array.array``, ``memoryview``). numpy is not required.
"""
import ctypes
from ctypes import POINTER, Structure, byref, c_char_p, c_int, c_int32, c_int64, c_ssize_t
from ctypes import c_uint8, c_uint16, c_uint64, c_void_p, py_object

from ._errors import InvalidError, UnsupportedError

#: Element types: name -> (value of banyan_dtype_t, bytes).
DTYPES = {
    "i8": (1, 1),
    "u8": (2, 1),
    "i32": (3, 4),
    "u32": (4, 4),
    "i64": (5, 8),
    "u64": (6, 8),
    "f16": (7, 2),
    "bf16": (8, 2),
    "f32": (9, 4),
    "f64": (10, 8),
}
#: Other names of element types, as numpy and PyTorch have them.
_ALIASES = {
    "int8": "i8",
    "uint8": "u8",
    "int32": "i32",
    "uint32": "u32",
    "int64": "i64",
    "uint64": "u64",
    "float16": "f16",
    "half": "f16",
    "bfloat16": "bf16",
    "float32": "f32",
    "float": "f32",
    "float64": "f64",
    "double": "f64",
}
#: Kind and size in an array interface -> type.
_TYPESTRINGS = {
    "|i1": "i8",
    "|u1": "u8",
    "<i4": "i32",
    "<u4": "u32",
    "<i8": "i64",
    "<u8": "u64",
    "<f2": "f16",
    "<f4": "f32",
    "<f8": "f64",
}
_TYPENUMBERS = {name: DTYPES[found] for name, found in _TYPESTRINGS.items()}
#: (code, bits) of DLPack -> type: 0 signed, 1 unsigned, 2 float, 4 bfloat.
_DLPACK = {
    (0, 8): "i8",
    (1, 8): "u8",
    (0, 32): "i32",
    (1, 32): "u32",
    (0, 64): "i64",
    (1, 64): "u64",
    (2, 16): "f16",
    (4, 16): "bf16",
    (2, 32): "f32",
    (2, 64): "f64",
}
#: Devices of DLPack whose memory libbanyan accepts: CPU, CUDA, pinned and managed CUDA memory.
_DEVICES = (1, 2, 3, 13)


class _Tensor(Structure):
    _fields_ = [
        ("data", c_void_p),
        ("device_type", c_int32),
        ("device_id", c_int32),
        ("ndim", c_int32),
        ("code", c_uint8),
        ("bits", c_uint8),
        ("lanes", c_uint16),
        ("shape", POINTER(c_int64)),
        ("strides", POINTER(c_int64)),
        ("byte_offset", c_uint64),
    ]


class _View(Structure):
    _fields_ = [
        ("buf", c_void_p),
        ("obj", c_void_p),
        ("len", c_ssize_t),
        ("itemsize", c_ssize_t),
        ("readonly", c_int),
        ("ndim", c_int),
        ("format", c_char_p),
        ("shape", c_void_p),
        ("strides", c_void_p),
        ("suboffsets", c_void_p),
        ("internal", c_void_p),
    ]


_get_buffer = ctypes.pythonapi.PyObject_GetBuffer
_get_buffer.restype = c_int
_get_buffer.argtypes = [py_object, POINTER(_View), c_int]
_release_buffer = ctypes.pythonapi.PyBuffer_Release
_release_buffer.restype = None
_release_buffer.argtypes = [POINTER(_View)]
_get_pointer = ctypes.pythonapi.PyCapsule_GetPointer
_get_pointer.restype = c_void_p
_get_pointer.argtypes = [py_object, c_char_p]

_addressof, _from_buffer = ctypes.addressof, ctypes.c_char.from_buffer
#: numpy's types that were found supported -> number of the element type.
_seen = {}

_WRITABLE, _FORMAT, _CONTIGUOUS = 0x1, 0x4, 0x18 | 0x20
_FORMATS = {"f": "f", "d": "f", "e": "f", "b": "i", "c": "u", "B": "u"}


def dtype_named(dtype):
    """Return (number, bytes) of an element type that the caller names: "f32", numpy.float32, torch.float32."""
    name = str(getattr(dtype, "name", None) or getattr(dtype, "__name__", None) or dtype)
    name = name.rpartition(".")[2]
    found = DTYPES.get(_ALIASES.get(name, name))
    if found is None:
        raise UnsupportedError(
            f"element type '{name}' is not supported; supported are {', '.join(DTYPES)}", -13
        )
    return found


def _refuse_type(what, name):
    raise UnsupportedError(
        f"{name}: elements of type {what} are not supported; supported are {', '.join(DTYPES)} in the "
        f"machine's byte order; convert the array, or pass dtype= to treat its bytes as another type",
        -13,
    )


def _refuse_strides(name):
    raise InvalidError(
        f"{name}: the array is not contiguous; pass a contiguous copy (numpy.ascontiguousarray, "
        f"Tensor.contiguous) and copy the result back",
        -1,
    )


def _refuse_readonly(name):
    raise InvalidError(f"{name}: the array is read-only, and the operation writes to it", -1)


def _product(shape):
    count = 1
    for extent in shape:
        count *= extent
    return count


def _dense(shape, strides, size):
    """Return whether strides (in bytes) are those of a C-contiguous array."""
    for extent, stride in zip(reversed(shape), reversed(strides)):
        if extent > 1 and stride != size:
            return False
        size *= extent
    return True


def _of_interface(interface, name, writable):
    typestr = interface["typestr"]
    shape = interface["shape"]
    address, readonly = interface["data"]
    number, size = _TYPENUMBERS.get(typestr, (0, int(typestr[2:])))
    strides = interface.get("strides")
    count = _product(shape)
    if strides is not None and count > 1 and not _dense(shape, strides, size):
        _refuse_strides(name)
    if readonly and writable:
        _refuse_readonly(name)
    return address, count, number, size, typestr


def _of_tensor(array, name, writable):
    capsule = array.__dlpack__()
    tensor = ctypes.cast(_get_pointer(capsule, b"dltensor"), POINTER(_Tensor)).contents
    shape = [tensor.shape[i] for i in range(tensor.ndim)]
    size = tensor.bits * tensor.lanes // 8
    if tensor.device_type not in _DEVICES:
        raise UnsupportedError(
            f"{name}: memory of DLPack device {tensor.device_type} is not supported; copy the tensor to the "
            f"CPU or to a CUDA device",
            -13,
        )
    if tensor.strides and not _dense(shape, [tensor.strides[i] for i in range(tensor.ndim)], 1):
        _refuse_strides(name)
    found = _DLPACK.get((tensor.code, tensor.bits)) if tensor.lanes == 1 else None
    number = DTYPES[found][0] if found else 0
    what = f"code {tensor.code} with {tensor.bits} bits"
    return (tensor.data or 0) + tensor.byte_offset, _product(shape), number, size, what


def _of_buffer(array, name, writable):
    view = _View()
    try:
        _get_buffer(array, byref(view), _FORMAT | _CONTIGUOUS | (_WRITABLE if writable else 0))
    except (BufferError, ValueError) as error:
        held = memoryview(array)
        if writable and held.readonly:
            _refuse_readonly(name)
        if not held.c_contiguous:
            _refuse_strides(name)
        raise InvalidError(f"{name}: {error}", -1) from error
    except TypeError:
        raise InvalidError(
            f"{name}: an object of type {type(array).__name__} is not an array; pass a numpy array, a tensor "
            f"with __dlpack__, or an object with the buffer protocol",
            -1,
        ) from None
    try:
        text = (view.format or b"B").decode()
        letter = text[-1:]
        size = view.itemsize
        native = text[:1] not in (">", "!") and len(text) <= 2
        kind = _FORMATS.get(letter, "i" if letter in "hilqn" else "u" if letter in "HILQN" else "?")
        sign = "|" if size == 1 else "<"
        number = _TYPENUMBERS.get(f"{sign}{kind}{size}", (0, 0))[0] if native else 0
        return view.buf or 0, view.len // size if size else 0, number, size, f"'{text}'"
    finally:
        _release_buffer(byref(view))


def locate(array, name, writable, dtype=None):
    """Return (address, element count, number of the element type) of ``array``.

    ``name`` is the argument's name for errors. ``dtype`` replaces the array's own type; it must have
    the size of its elements, so uint16 arrays may hold "bf16". The caller keeps a reference to the
    array, and does not resize it, while the address is in use.
    """
    if dtype is None:
        try:  # the usual case: a contiguous, writable numpy array of a type that was seen before
            return _addressof(_from_buffer(array)), array.size, _seen[array.dtype]
        except (AttributeError, KeyError, TypeError, ValueError, BufferError):
            pass
    interface = getattr(array, "__array_interface__", None)
    known = interface is not None
    if interface is None:
        interface = getattr(array, "__cuda_array_interface__", None)
    if interface is not None:
        found = _of_interface(interface, name, writable)
    elif hasattr(array, "__dlpack__"):
        found = _of_tensor(array, name, writable)
    else:
        found = _of_buffer(array, name, writable)
    address, count, number, size, what = found
    if dtype is not None:
        number, wanted = dtype_named(dtype)
        if size != wanted:
            raise InvalidError(
                f"{name}: dtype {dtype} has {wanted} bytes, and the array's elements have {size}", -1
            )
    elif not number:
        _refuse_type(what, name)
    elif known and hasattr(array, "size"):
        _seen[array.dtype] = number
    return address, count, number


def held(array):
    """Return an object that keeps the memory of ``array`` where it is, for as long as it lives."""
    if hasattr(array, "__array_interface__") or hasattr(array, "__dlpack__"):
        return array
    try:
        return memoryview(array)  # a bytearray with a view cannot be resized
    except TypeError:
        return array


def view_of(address, nbytes):
    """Return a writable memoryview of ``nbytes`` bytes at ``address``."""
    return memoryview((c_uint8 * nbytes).from_address(address)).cast("B") if nbytes else memoryview(b"")


__all__ = ["DTYPES", "dtype_named", "held", "locate", "view_of"]
