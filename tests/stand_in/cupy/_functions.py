"""cupy.* for the device array: NumPy's functions, with checks and with counts of their work."""

import builtins

import numpy as np

from ._array import SCALARS, ndarray, plain, sorted_by_thrust, view, wrap
from ._counts import IS_13, launched, uploaded, waited

_UFUNCS = """add subtract multiply divide true_divide floor_divide remainder mod power exp exp2
expm1 log log2 log10 log1p sqrt square cbrt reciprocal negative positive absolute abs fabs sign
tanh sinh cosh sin cos tan arcsin arccos arctan arctan2 maximum minimum fmax fmin greater
greater_equal less less_equal equal not_equal logical_and logical_or logical_not logical_xor
bitwise_and bitwise_or bitwise_xor invert left_shift right_shift isnan isinf isfinite floor ceil
trunc rint fmod copysign hypot matmul""".split()
_OPERATORS = {
    "add": "add", "sub": "subtract", "mul": "multiply", "truediv": "true_divide",
    "floordiv": "floor_divide", "mod": "remainder", "pow": "power", "and": "bitwise_and",
    "or": "bitwise_or", "xor": "bitwise_xor", "lshift": "left_shift", "rshift": "right_shift",
    "matmul": "matmul",
}  # fmt: skip
_COMPARISONS = {
    "lt": "less", "le": "less_equal", "gt": "greater", "ge": "greater_equal", "eq": "equal",
    "ne": "not_equal",
}  # fmt: skip
_ONES = {"neg": "negative", "abs": "absolute", "invert": "invert", "pos": "positive"}
_REDUCTIONS = "sum max min amax amin mean var std any all argmax argmin prod count_nonzero".split()


def into(found, out):
    """Return a result, written to the array that was given for it, if one was."""
    if out is None:
        return wrap(found)
    if not isinstance(out, ndarray):
        raise TypeError(f"Output arguments type must be cupy.ndarray, got {type(out)}")
    out._a[...] = found
    return out


class ufunc:
    def __init__(self, name):
        self.__name__, self._func = name, getattr(np, name)

    def __call__(self, *args, out=None, dtype=None, casting="same_kind"):
        if len(args) > self._func.nin:
            *args, out = args
        (out,) = out if isinstance(out, tuple) else (out,)
        for each in args:
            if not isinstance(each, (ndarray, *SCALARS)):
                raise TypeError(f"Unsupported type {type(each)}")
        if out is not None and not isinstance(out, ndarray):
            raise TypeError(f"Output arguments type must be cupy.ndarray, got {type(out)}")
        more = {} if dtype is None else {"dtype": dtype}
        with np.errstate(all="ignore"):
            if out is not None:
                more["out"] = out._a
            found = self._func(*map(plain, args), casting=casting, **more)
        launched(self.__name__, np.size(found) > 0, np.size(found))
        return wrap(found) if out is None else out

    def reduce(self, a, axis=0, dtype=None, out=None, keepdims=False):
        launched(f"{self.__name__}.reduce", 1, a.size)
        return into(self._func.reduce(plain(a), axis=axis, dtype=dtype, keepdims=keepdims), out)

    def at(self, a, indices, b=None):
        if self.__name__ != "add":
            raise NotImplementedError(self.__name__)
        a.scatter_add(indices, b)


def _operator(name, is_turned=False, is_in_place=False):
    func = globals()[name]

    def method(self, other):
        if not isinstance(other, (ndarray, *SCALARS)):
            raise TypeError(f"Unsupported type {type(other)}")
        pair = (other, self) if is_turned else (self, other)
        return func(*pair, **({"out": self} if is_in_place else {}))

    return method


def _one(name):
    func = globals()[name]
    return lambda self: func(self)


def _reduction(name):
    def reduce(a, axis=None, dtype=None, out=None, keepdims=False):
        if not isinstance(a, ndarray):
            raise TypeError(f"Unsupported type {type(a)}")
        more = {} if dtype is None else {"dtype": dtype}
        with np.errstate(all="ignore"):
            found = getattr(np, name)(a._a, axis=axis, keepdims=keepdims, **more)
        launched(name, {"var": 2, "std": 3}.get(name, 1), a.size)
        return into(found, out)

    return reduce


for _name in _UFUNCS:
    globals()[_name] = ufunc(_name)
for _name in _REDUCTIONS:
    globals()[_name] = _reduction(_name)
    if _name not in ("amax", "amin", "count_nonzero"):
        setattr(ndarray, _name, globals()[_name])
for _name, _of in _OPERATORS.items():
    setattr(ndarray, f"__{_name}__", _operator(_of))
    setattr(ndarray, f"__r{_name}__", _operator(_of, is_turned=True))
    setattr(ndarray, f"__i{_name}__", _operator(_of, is_in_place=True))
for _name, _of in _COMPARISONS.items():
    setattr(ndarray, f"__{_name}__", _operator(_of))
for _name, _of in _ONES.items():
    setattr(ndarray, f"__{_name}__", _one(_of))


# --- creation -----------------------------------------------------------------------


def array(obj, dtype=None, copy=True, order="K", subok=False, ndmin=0, blocking=False):
    if isinstance(obj, ndarray):
        if not copy and (dtype is None or obj.dtype == np.dtype(dtype)):
            return obj
        launched("array", obj.size > 0, obj.size)
        return wrap(np.array(obj._a, dtype=dtype, ndmin=ndmin))
    if isinstance(obj, (list, tuple)) and builtins.any(isinstance(each, ndarray) for each in obj):
        launched("array of arrays")
        return wrap(np.array([plain(each) for each in obj], dtype=dtype))
    host = np.array(obj, dtype=dtype, order="C" if order in "KA" else order, ndmin=ndmin)
    if host.ndim == 0:
        launched("array of a scalar")
    elif host.size:
        uploaded("array", host.nbytes)
    return wrap(host)


def asarray(a, dtype=None, order=None, *, blocking=False):
    return array(a, dtype=dtype, copy=False)


asanyarray = asarray


def ascontiguousarray(a, dtype=None):
    if not isinstance(a, ndarray):
        raise TypeError(f"Argument 'a' has incorrect type (expected ndarray, got {type(a)})")
    if a.flags.c_contiguous and (dtype is None or a.dtype == np.dtype(dtype)):
        return a
    launched("ascontiguousarray", a.size > 0, a.size)
    return wrap(np.ascontiguousarray(a._a, dtype=dtype))


def asnumpy(a, stream=None, order="C", out=None, *, blocking=True):
    return a.get() if isinstance(a, ndarray) else np.asarray(a)


def _creation(name, is_like=False, n_launches=1):
    def make(shape, *args, dtype=None, order="C"):
        if isinstance(shape, ndarray) != is_like:
            raise TypeError(f"{name}: Unsupported type {type(shape)}")
        given = list(map(plain, args))
        n_own = 1 if "full" in name else 0
        if len(given) > n_own:
            dtype = given.pop()
        dtype = dtype if dtype is not None or is_like or n_own else float
        host = getattr(np, name)(plain(shape), *given, dtype=dtype)
        if "empty" in name:  # Makes errors visible if a cell is read before it is written.
            host[...] = np.nan if host.dtype.kind == "f" else 0x55
        made = wrap(host)
        launched(name, n_launches * (made.size > 0), made.size)
        return made

    return make


for _name in ("zeros", "ones", "empty", "full"):
    for _more in ("", "_like"):
        globals()[_name + _more] = _creation(_name + _more, bool(_more), int(_name != "empty"))


def arange(start, stop=None, step=1, dtype=None):
    if builtins.any(isinstance(each, ndarray) for each in (start, stop, step)):
        raise TypeError("arange of values on the device")
    bounds = (start, stop) if stop is not None else (0, start)
    made = wrap(np.arange(*bounds, step, dtype))
    launched("arange", made.size > 0, made.size)
    return made


# --- joining and shapes ---------------------------------------------------------------


def _joining(name):
    def join(arrays, axis=0, out=None, *, dtype=None, casting="same_kind"):
        arrays = list(arrays)
        if not builtins.all(isinstance(each, ndarray) for each in arrays):
            raise TypeError("Only cupy arrays can be concatenated")
        launched(name, 1, builtins.sum(each.size for each in arrays))
        return into(getattr(np, name)([each._a for each in arrays], axis=axis), out)

    return join


concatenate, stack = _joining("concatenate"), _joining("stack")


def vstack(arrays):
    return concatenate(list(arrays))


def hstack(arrays):
    return concatenate(list(arrays), axis=1 if arrays[0].ndim > 1 else 0)


def split(a, indices, axis=0):
    if isinstance(indices, ndarray):
        raise TypeError("split needs indices of the host")
    return [view(each, a) for each in np.split(a._a, indices, axis)]


def reshape(a, shape, order="C"):
    return a.reshape(shape, order=order)


def ravel(a, order="C"):
    return a.ravel(order)


def transpose(a, axes=None):
    return a.T if axes is None else a.transpose(axes)


def expand_dims(a, axis):
    return view(np.expand_dims(a._a, axis), a)


def broadcast_to(a, shape):
    return view(np.broadcast_to(a._a, shape), a)


def squeeze(a, axis=None):
    return a.squeeze(axis)


def repeat(a, repeats, axis=None):
    if isinstance(repeats, np.ndarray):
        raise TypeError("'repeats' does not accept numpy.ndarray")
    n = 1
    if IS_13 and isinstance(repeats, ndarray):
        raise ValueError("cupy.ndaray cannot be specified as `repeats` argument.")
    if isinstance(repeats, (list, tuple)):
        n = len(repeats) if IS_13 else 5
        if not IS_13:
            uploaded("repeat", 8 * len(repeats))
    if isinstance(repeats, (list, tuple, ndarray)) and not IS_13:
        waited("repeat")
    launched("repeat", n)
    return wrap(np.repeat(plain(a), plain(repeats), axis))


ndarray.repeat = repeat


def copyto(to, source, casting="same_kind", where=None):
    launched("copyto", 1, to.size)
    to._a[...] = plain(source)


def copy(a, order="C"):
    return a.copy(order)


# --- searching and sorting --------------------------------------------------------------


def where(condition, x=None, y=None):
    if x is None:
        return condition.nonzero()
    found = wrap(np.where(plain(condition), plain(x), plain(y)))
    launched("where", found.size > 0, found.size)
    return found


def nonzero(a):
    return a.nonzero()


def flatnonzero(a):
    return a.ravel().nonzero()[0]


def sort(a, axis=-1, kind=None):
    launched("sort", 2 * (a.size > 0), a.size)
    sorted_by_thrust(a.size)
    return wrap(np.sort(a._a, axis=axis, kind="stable"))


def argsort(a, axis=-1, kind=None):
    return a.argsort(axis=axis, kind=kind)


def unique(a, return_index=False, return_inverse=False, return_counts=False, axis=None):
    launched("unique", 6, a.size)
    waited("unique")
    found = np.unique(plain(a), return_index, return_inverse, return_counts)
    return tuple(map(wrap, found)) if isinstance(found, tuple) else wrap(found)


def searchsorted(a, v, side="left", sorter=None):
    launched("searchsorted")
    return wrap(np.searchsorted(a._a, v._a, side))


def bincount(x, weights=None, minlength=None):
    if x.dtype.kind not in "?biu":
        raise TypeError("x must be int array")
    waited("bincount: any")
    if not x.size:
        if IS_13:
            raise ValueError("zero-size array to reduction operation cupy_max has no identity")
        return zeros((minlength or 0,), dtype="int64")  # noqa: F821
    waited("bincount: max")
    launched("bincount", 5)
    return wrap(np.bincount(x._a, plain(weights), minlength or 0))


def take(a, indices, axis=None, out=None):
    if not isinstance(indices, (ndarray, int, np.integer)):
        indices = np.asarray(indices, dtype=int)
        uploaded("take", indices.nbytes)
        indices = wrap(indices)
    found = np.take(a._a, plain(indices), axis=axis)
    launched("take", found.size > 0, found.size)
    return into(found, out)


def take_along_axis(a, indices, axis):
    launched("take_along_axis", 2)
    return wrap(np.take_along_axis(a._a, indices._a, axis))


if not IS_13:

    def put_along_axis(a, indices, values, axis):
        launched("put_along_axis", 2)
        np.put_along_axis(a._a, indices._a, plain(values), axis)


# --- mathematics --------------------------------------------------------------------------


def cumsum(a, axis=None, dtype=None, out=None):
    launched("cumsum", 2, a.size)
    return into(a._a.cumsum(axis=axis, dtype=dtype), out)


def clip(a, a_min=None, a_max=None, out=None):
    launched("clip", a.size > 0, a.size)
    return into(np.clip(a._a, plain(a_min), plain(a_max)), out)


def dot(a, b, out=None):
    for each in (a, b):
        flags = each.flags
        launched("product: copy", each.ndim > 1 and not (flags.c_contiguous or flags.f_contiguous))
    launched("product", 1, builtins.max(a.size, b.size))
    return into(np.dot(a._a, b._a), out)


def tensordot(a, b, axes=2):
    launched("tensordot", 1, builtins.max(a.size, b.size))
    return wrap(np.tensordot(a._a, b._a, axes))


def einsum(subscripts, *arrays):
    launched("einsum", 2, builtins.max(each.size for each in arrays))
    return wrap(np.einsum(subscripts, *map(plain, arrays)))


def vdot(a, b):
    launched("vdot", 1, a.size)
    return wrap(np.vdot(a._a, b._a))


for _method in (cumsum, clip, dot, searchsorted):
    setattr(ndarray, _method.__name__, _method)


def get_array_module(*arrays):
    import cupy

    return cupy if builtins.any(isinstance(each, ndarray) for each in arrays) else np


def array_equal(a, b):
    launched("array_equal", 2)
    return wrap(np.array_equal(a._a, b._a))


def allclose(a, b, rtol=1e-5, atol=1e-8):
    launched("allclose", 2)
    return wrap(np.allclose(a._a, plain(b), rtol, atol))


def tile(a, reps):
    launched("tile")
    return wrap(np.tile(a._a, reps))
