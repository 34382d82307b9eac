"""Kernels in C++: their source code, compiled by the host's compiler and run in loops."""

import ctypes
import hashlib
import os
import re
import subprocess
import tempfile
import threading
from functools import lru_cache
from pathlib import Path

import numpy as np

from ._array import ndarray, plain, wrap
from ._counts import launched

_SHIM = Path(__file__).parent / "_shim.h"
_NAMES = re.compile(r"__global__\s+void\s+(?:__launch_bounds__\(\w+\) )?(\w+)\s*\(")
# The most threads per block; tests of kernels with barriers set more.
threads_of_a_block = 1
# Kernels of a stream run one after the other, whichever thread starts them.
_stream = threading.Lock()


@lru_cache(maxsize=None)
def _compiled(code, options, names):
    """Return the library of some kernels. It is cached on disk between processes."""
    calls = "".join(
        f"static void call{at}(void **a) {{ _call(&{name}, a); }}\n"
        f'extern "C" void run{at}(void **a, int blocks, int threads)'
        f" {{ _run_grid(call{at}, a, blocks, threads); }}\n"
        for at, name in enumerate(names)
    )
    defined = "".join(f"#define {each[2:].replace('=', ' ')}\n" for each in options)
    code = _counting(code)
    source = f"{_SHIM.read_text()}{defined}\nnamespace kernels {{\n{code}\n{calls}}}\n"
    name = hashlib.sha256(source.encode()).hexdigest()[:24]
    folder = Path(tempfile.gettempdir()) / f"cupy-stand-in-{os.getuid()}"
    folder.mkdir(mode=0o700, exist_ok=True)
    library = folder / f"{name}.so"
    if not library.exists():
        path = folder / f"{name}-{os.getpid()}"
        path.with_suffix(".cpp").write_text(source)
        # Without -ffast-math and -march, so that sums are the same on any machine.
        command = ["c++", "-std=c++17", "-O2", "-shared", "-fPIC", "-w", "-ffp-contract=off"]
        command += ["-o", f"{path}.so", f"{path}.cpp"]
        done = subprocess.run(command, capture_output=True, text=True)
        path.with_suffix(".cpp").unlink()
        if done.returncode:
            raise RuntimeError(f"the kernels do not compile:\n{done.stderr}")
        os.replace(f"{path}.so", library)
    return ctypes.CDLL(str(library))


def _counting(code):
    """Return the code, changed to count all iterations of its loops."""
    parts = re.split(r"\bfor \(", code)
    for number, part in enumerate(parts[1:], 1):
        depth = end = 0
        while depth >= 0:
            depth += {"(": 1, ")": -1}.get(part[end], 0)
            end += 1
        step = "" if part[: end - 1].rstrip().endswith(";") else ","
        parts[number] = f"{part[: end - 1]}{step} n_turns++{part[end - 1 :]}"
    return "for (".join(parts)


class RawModule:
    def __init__(self, code=None, options=(), name_expressions=(), backend="nvrtc"):
        self._code, self._names = code, tuple(name_expressions or ())

    def get_function(self, name):
        if self._names and name not in self._names:
            raise KeyError(name)
        return RawKernel(self._code, name, names=self._names)


class RawKernel:
    def __init__(self, code, name, options=(), backend="nvrtc", names=()):
        if any(not each.startswith("-D") for each in options):
            raise NotImplementedError(options)
        names = names or tuple(_NAMES.findall(code))
        self.name, self._code, self._options, self._names = name, code, options, names

    def __call__(self, grid, block, args, *, shared_mem=0, stream=None):
        if any(len(each) > 1 and set(each[1:]) != {1} for each in (grid, block)):
            raise NotImplementedError("grids of several dimensions")
        if not 0 < block[0] <= 1024 or not 0 < grid[0] < 2**31:
            raise ValueError(f"CUDA_ERROR_INVALID_VALUE: grid {grid}, block {block}")
        cells = []
        for each in args:
            if isinstance(each, ndarray):
                if not each.flags.c_contiguous:
                    raise ValueError(f"{self.name} got a strided array, but reads addresses")
                each = np.int64(plain(each).ctypes.data)
            elif isinstance(each, np.ndarray) or not isinstance(each, (int, float, np.generic)):
                raise TypeError(f"Unsupported type {type(each)}")
            cells.append(np.array([each, 0]))  # An int has 64 bits, a float is a double.
        pointers = (ctypes.c_void_p * len(cells))(*(cell.ctypes.data for cell in cells))
        library = _compiled(self._code, self._options, self._names)
        run = getattr(library, f"run{self._names.index(self.name)}")
        turns = ctypes.c_longlong.in_dll(library, "n_turns")
        before = turns.value
        with _stream:
            run(pointers, grid[0], min(block[0], threads_of_a_block))
        launched(f"kernel {self.name}", 1, turns.value - before)


def _adam(gradient, learn_rate, newest1, newest2, eps, weights, mom1, mom2):
    g, w, m, v = (plain(each) for each in (gradient, weights, mom1, mom2))
    number = w.dtype.type
    m += number(newest1) * (g - m)
    v += number(newest2) * (g * g - v)
    w -= number(learn_rate) * m / (np.sqrt(v) + number(eps))


class ElementwiseKernel:
    def __init__(self, in_params, out_params, operation, name="kernel", **more):
        self.name = name

    def __call__(self, *args):
        launched(f"kernel {self.name}", 1, max(getattr(each, "size", 0) for each in args))
        {"adam": _adam}[self.name](*args)


class ReductionKernel:
    def __init__(self, ins, outs, map_expr, reduce_expr, post_expr, identity, name="kernel"):
        self.name = name

    def __call__(self, *args):
        launched(f"kernel {self.name}")
        values, lower, upper = map(plain, args)
        return wrap({"within_range": ((values >= lower) & (values < upper)).all()}[self.name])
