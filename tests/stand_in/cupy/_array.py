"""The device array: it holds a NumPy array that only this package may touch."""

import numpy as np

from . import _devices
from ._counts import IS_13, launched, uploaded, waited, waited_only
from ._memory import Held, pool

SCALARS = (int, float, bool, complex, np.generic)


class Pointer:
    """MemoryPointer."""

    def __init__(self, owner):
        self.ptr, self.owner, self.device_id = owner._raw.ctypes.data, owner, owner._device


class ndarray:
    """cupy.ndarray"""

    __slots__ = ("_raw", "_device", "_held", "base", "__weakref__")
    __module__ = "cupy"
    __hash__ = None
    __array_priority__ = 100

    def __new__(cls, shape=None, dtype=float, memptr=None, strides=None, order="C"):
        if memptr is None:
            return wrap(np.empty(shape, dtype=dtype, order=order))
        n_bytes = int(np.prod(shape)) * np.dtype(dtype).itemsize
        own = memptr.owner._raw.reshape(-1).view("u1")[:n_bytes]
        return view(own.view(dtype).reshape(shape), None, memptr)

    @property
    def _a(self):
        """Return the NumPy array for an operation on the current device."""
        _devices.check(self._device)
        return self._raw

    dtype = property(lambda self: self._raw.dtype)
    ndim = property(lambda self: self._raw.ndim)
    size = property(lambda self: self._raw.size)
    nbytes = property(lambda self: self._raw.nbytes)
    itemsize = property(lambda self: self._raw.itemsize)
    strides = property(lambda self: self._raw.strides)
    flags = property(lambda self: self._raw.flags)
    data = property(lambda self: Pointer(self))
    T = property(lambda self: view(self._raw.T, self))

    @property
    def shape(self):
        return self._raw.shape

    @shape.setter
    def shape(self, shape):
        self._raw = (
            self._raw.reshape(shape, copy=False)
            if np.lib.NumpyVersion(np.__version__) >= "2.1.0"
            else self._raw.reshape(shape)
        )

    @property
    def device(self):
        from .cuda import Device

        return Device(self._device)

    def __len__(self):
        return len(self._raw)

    def __iter__(self):
        return (self[number] for number in range(len(self._raw)))

    # --- operations that wait -------------------------------------------------------

    def get(self, stream=None, order="C", out=None, blocking=True):
        waited("get", self.nbytes)
        if out is None:
            return np.array(self._raw, order=order)
        if not isinstance(out, np.ndarray):
            raise TypeError("Only numpy.ndarray can be obtained from cupy.ndarray")
        if out.dtype != self.dtype or out.shape != self.shape or not out.flags.c_contiguous:
            raise ValueError("out must be as this array is, and contiguous")
        out[...] = self._raw
        return out

    def __reduce__(self):
        waited("pickle")
        return _unpickled, (np.array(self._raw),)

    def __copy__(self):
        return self.copy()

    def __deepcopy__(self, memo):
        with self.device:
            return self.copy()

    # --- refused operations ---------------------------------------------------------

    def __array__(self, dtype=None, copy=None):
        raise TypeError(
            "Implicit conversion to a NumPy array is not allowed. "
            "Please use `.get()` to construct a NumPy array explicitly."
        )

    def __array_ufunc__(self, ufunc, method, *inputs, out=(), **more):
        import cupy

        for each in (*inputs, *out):
            if isinstance(each, np.ndarray):
                raise TypeError(f"Unsupported type {type(each)}")
        found = getattr(cupy, ufunc.__name__, None)
        found = found if method == "__call__" else getattr(found, method, None)
        if found is None:
            return NotImplemented
        return found(*inputs, **({"out": out[0]} if out else {}), **more)

    def __array_function__(self, func, types, args, more):
        import cupy

        module = cupy.linalg if func.__module__ == "numpy.linalg" else cupy
        found = getattr(module, func.__name__, None)
        return NotImplemented if found is None else found(*args, **more)

    # --- copies and views -----------------------------------------------------------

    def copy(self, order="C"):
        launched("copy", self.size > 0, self.size)
        # On the current device, whatever the array's device.
        return wrap(np.array(self._raw, order=order))

    def flatten(self, order="C"):
        launched("flatten", self.size > 0, self.size)
        return wrap(self._a.flatten(order))

    def astype(self, dtype, order="K", casting=None, subok=None, copy=True):
        if not copy and self.dtype == np.dtype(dtype):
            return self
        launched("astype", self.size > 0, self.size)
        return wrap(self._a.astype(dtype, order=order))

    def view(self, dtype=None):
        return view(self._raw.view(*([] if dtype is None else [dtype])), self)

    def reshape(self, *shape, order="C"):
        return view_or_copy(self._raw.reshape(*shape, order=order), self, "reshape")

    def ravel(self, order="C"):
        return view_or_copy(self._raw.ravel(order), self, "ravel")

    def transpose(self, *axes):
        return view(self._raw.transpose(*axes), self)

    def swapaxes(self, one, other):
        return view(self._raw.swapaxes(one, other), self)

    def squeeze(self, axis=None):
        return view(self._raw.squeeze(axis), self)

    def fill(self, value):
        launched("fill", self.size > 0, self.size)
        self._a.fill(_one_value(value))

    def set(self, array, stream=None):
        if not isinstance(array, np.ndarray):
            raise TypeError("Only numpy.ndarray can be set to cupy.ndarray")
        if self.dtype != array.dtype:
            raise TypeError(f"{array.dtype} array cannot be set to {self.dtype} array")
        if self.shape != array.shape:
            raise ValueError(f"Shape mismatch. Old shape: {self.shape}, new shape: {array.shape}")
        uploaded("set", array.nbytes)
        self._a[...] = array

    # --- indexing ---------------------------------------------------------------------

    def __getitem__(self, key):
        index, n_arrays = _index(key)
        if not n_arrays:  # ``...`` makes a view of a single cell, too.
            whole = index if isinstance(index, tuple) else (index,)
            return view(self._raw[whole if Ellipsis in whole else (*whole, Ellipsis)], self)
        found = np.array(self._a[index])
        launched("place of arrays", 1 if n_arrays == 1 else 2 + n_arrays, found.size)
        return wrap(found)

    def __setitem__(self, key, value):
        index, n_arrays = _index(key)
        if not n_arrays:
            target = self._a[index]
            if isinstance(value, ndarray):
                if np.ndim(target) and _is_same(target, value._a):
                    return
                self._a[index] = value._a
            else:
                self._a[index] = _one_value(value)
            launched("set a slice", np.size(target) > 0, np.size(target))
            return
        if isinstance(value, ndarray):
            launched("set places: astype", value.dtype != self.dtype and value.size > 0)
        else:
            value = wrap(np.asarray(_one_value(value), dtype=self.dtype))
            launched("set places: value")
        launched("set places", 1 if n_arrays == 1 else 2 + n_arrays, value.size)
        self._a[index] = value._a

    def take(self, indices, axis=None, out=None):
        import cupy

        return cupy.take(self, indices, axis, out)

    def nonzero(self):
        if self.size:
            launched("nonzero", 2 + (self.dtype != bool), self.size)
            waited("nonzero")
        return tuple(map(wrap, self._a.nonzero()))

    def scatter_add(self, slices, value):
        index, _ = _index(slices)
        launched("scatter_add", 1, np.size(self._a[index]))
        np.add.at(self._a, index, value._a if isinstance(value, ndarray) else value)

    def sort(self, axis=-1, kind=None):
        launched("sort", self.size > 0, self.size)
        sorted_by_thrust(self.size)
        self._a.sort(axis=axis, kind="stable")

    def argsort(self, axis=-1, kind=None):
        if kind not in (None, "stable"):
            raise ValueError("kind can only be None or 'stable'")
        launched("argsort", 2 * (self.size > 0), self.size)
        sorted_by_thrust(self.size)
        return wrap(self._a.argsort(axis=axis, kind="stable"))


def _waiting(name, of):
    def method(self, *args):
        waited(name)
        return of(self._raw, *args)

    return method


for _name, _of in {
    "item": np.ndarray.item, "tolist": np.ndarray.tolist, "tobytes": np.ndarray.tobytes,
    "__float__": float, "__int__": int, "__bool__": bool, "__complex__": complex,
    "__repr__": repr, "__str__": str, "__format__": format,
}.items():  # fmt: skip
    setattr(ndarray, _name, _waiting(_name.strip("_"), _of))


def sorted_by_thrust(size):
    """With CuPy 13, sorting waits for the device."""
    if IS_13 and size > 1:
        waited_only("sort (CuPy 13)")


def wrap(array):
    """Make a new device array of a result."""
    array = np.asarray(array)
    if array.dtype.kind not in "?biufc" or array.itemsize > 8 + 8 * (array.dtype.kind == "c"):
        raise ValueError(f"Unsupported dtype {array.dtype}")
    return view(array, None)


def view(array, base, held=None):
    """Make a device array over the memory of another one, or over memory that is held already."""
    self = object.__new__(ndarray)
    self._raw, self.base = array, base if base is None or base.base is None else base.base
    self._device = _devices.current() if base is None else base._device
    self._held = Held(pool, array.nbytes) if base is None and held is None else held
    return self


def view_or_copy(array, base, name):
    if array.size and not np.may_share_memory(array, base._raw):
        launched(f"{name}: copy", 1, array.size)
        return wrap(array)
    return view(array, base)


def plain(value):
    """Return the NumPy array of a device array. Scalars and shapes are returned unchanged, and host
    data is refused."""
    if isinstance(value, ndarray):
        return value._a
    if isinstance(value, np.ndarray):
        raise TypeError(f"Unsupported type {type(value)}")
    return value


def _one_value(value):
    """Return a value to fill a device array with."""
    if isinstance(value, (list, tuple)) or getattr(value, "ndim", 0):
        raise ValueError("non-scalar numpy.ndarray cannot be used for fill")
    return value._a if isinstance(value, ndarray) else value


def _index(key):
    """Return the key for NumPy, and the number of arrays in it. Host data in it is copied to the
    device, and masks make the host wait."""
    parts, n_arrays = list(key) if isinstance(key, tuple) else [key], 0
    for at, part in enumerate(parts):
        if isinstance(part, (list, np.ndarray)):
            parts[at] = np.asarray(part)
            uploaded("index", parts[at].nbytes)
        elif isinstance(part, ndarray):
            parts[at] = part._a
        else:
            continue
        n_arrays += 1
        if parts[at].dtype == bool:
            launched("place of a mask: scan")
            waited("place of a mask")
    return tuple(parts) if isinstance(key, tuple) else parts[0], n_arrays


def _is_same(one, other):
    return (one.shape, one.strides, one.ctypes.data) == (
        other.shape, other.strides, other.ctypes.data,
    )  # fmt: skip


def _unpickled(array):
    import cupy

    return cupy.array(array)
