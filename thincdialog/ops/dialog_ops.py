"""Thinc's ops for the CPU and a GPU, with exact products and seeded dropout."""

import copy
import ctypes
import math
from contextlib import contextmanager
from contextvars import ContextVar
from functools import lru_cache
from typing import Any, Iterator, Optional, cast

import numpy
from thinc.api import NumpyOps, Ops
from thinc.types import DeviceTypes, FloatsXd, Shape
from threadpoolctl import threadpool_limits

from ..registry import registry

# Numbers of these settings in glibc, and the largest value that glibc accepts for the first.
_MMAP_THRESHOLD, _TRIM_THRESHOLD = -3, -1
_LARGEST, _MOST_KEPT = 32 << 20, 1 << 30
# On the host, dropout draws 16 bits per cell.
_LEVELS = 1 << 16
# Per thread, because threads share ops.
_is_exact: ContextVar[bool] = ContextVar("is_exact", default=False)


class DrawsAndProducts:
    """Add to ops random draws on the host that depend only on ``seed``, and a ``gemm`` that
    multiplies in double precision and rounds the result once while ``has_exact_products`` is true.

    BLAS sums the products of a row in an order that depends on the row's position and on the
    number of rows. So in single precision, two replies with equal scores may change places with
    the batch size. An exact product takes about twice as long.
    """

    xp: Any

    @property
    def has_exact_products(self) -> bool:
        """Whether products in this thread are exact (see ``exact_products``)."""
        return _is_exact.get()

    def gemm(
        self, x: Any, y: Any, out: Any = None, trans1: bool = False, trans2: bool = False
    ) -> Any:
        """Return the product of two matrices, each transposed if asked for; shape (rows of x,
        columns of y), float32."""
        if not self.has_exact_products or out is not None:
            return super().gemm(x, y, out=out, trans1=trans1, trans2=trans2)  # type: ignore[misc]
        left, right = x.astype("d"), y.astype("d")
        product = self.xp.dot(left.T if trans1 else left, right.T if trans2 else right)
        return product.astype("f")

    def seed(self, seed: int, step: int = 0, microbatch: int = 0) -> None:
        """Start the random draws of one microbatch (see ``stream_seed``)."""
        self._stream = (seed, step, microbatch)
        self._generator: Optional[numpy.random.Generator] = None

    @property
    def step(self) -> int:
        """Number of the optimizer step that ``seed`` was called with."""
        return self._stream[1]

    @property
    def generator(self) -> numpy.random.Generator:
        """Generator of all random draws since ``seed``; created at the first draw."""
        if self._generator is None:
            bits = numpy.random.SFC64(stream_seed(*self._stream))
            self._generator = numpy.random.Generator(bits)
        return self._generator

    def draw_mask(self, shape: Shape, drop: Optional[float]) -> numpy.ndarray:
        """Draw factors for dropout on the host: 0 with probability ``drop`` (to the nearest
        1/65536), else the factor that keeps the expected value at exactly 1.

        shape (Shape): Shape of the mask.
        drop (Optional[float]): Probability of zeroing a value; None or 0 for no dropout.
        RETURNS (np.ndarray): Shape ``shape``, float32.
        """
        dropped = 0 if drop is None else max(0, round(drop * _LEVELS))
        if dropped == 0:
            return numpy.ones(shape, dtype="f")
        if dropped >= _LEVELS:
            return numpy.zeros(shape, dtype="f")
        levels = self.generator.integers(0, _LEVELS, size=shape, dtype=numpy.uint16)
        kept = numpy.float32(_LEVELS / (_LEVELS - dropped))
        return numpy.multiply(levels >= dropped, kept, dtype="f")


@registry.ops("thincdialog_numpy")
class DialogNumpyOps(DrawsAndProducts, NumpyOps):
    """Extend Thinc's NumpyOps with two changes: ``gemm`` is NumPy's (OpenBLAS takes a third of the
    CPU time of BLIS on AVX-512) and can be exact (``exact_products``); and dropout masks are drawn
    from the ops' own generator, which ``seed`` sets.

    Creating an instance limits BLAS to one thread in this process. So results do not depend on the
    number of cores, and threads do not wait for each other on a busy machine (where small products
    in two threads took 100 times as long as in one). It also makes the process keep the memory that
    it frees (see ``keep_memory``).

    device_type (DeviceTypes): "cpu".
    device_id (int): -1.
    """

    name = "thincdialog_numpy"

    def __init__(self, device_type: DeviceTypes = "cpu", device_id: int = -1) -> None:
        super().__init__(device_type, device_id, use_blis=False)
        _limit_blas_threads()
        keep_memory()
        self.seed(0)

    def get_dropout_mask(self, shape: Shape, drop: Optional[float]) -> FloatsXd:
        """Return ``draw_mask`` of the same arguments."""
        return cast(FloatsXd, self.draw_mask(shape, drop))


def replicate_ops(ops: Ops) -> Ops:
    """Return ops with the same settings and their own random generator."""
    twin = copy.copy(ops)
    if isinstance(twin, DrawsAndProducts):
        twin.seed(0)
    return twin


def draw_mask(ops: Ops, shape: Shape, drop: float) -> numpy.ndarray:
    """Draw a dropout mask on the host, for any ops; see ``DrawsAndProducts.draw_mask``."""
    if isinstance(ops, DrawsAndProducts):
        return ops.draw_mask(shape, drop)
    mask: Any = ops.get_dropout_mask(shape, drop)
    return ops.to_numpy(mask)


def training_step(ops: Ops) -> float:
    """Return the number of the current optimizer step of the ops, from 1; infinity for stock ops,
    which do not count steps."""
    return ops.step if isinstance(ops, DrawsAndProducts) else math.inf


@contextmanager
def exact_products(ops: Ops) -> Iterator[None]:
    """Make products of our ops exact in this thread, within a context; stock ops do not change.

    ops (Ops): Ops of the model.
    """
    if not isinstance(ops, DrawsAndProducts):
        yield
        return
    token = _is_exact.set(True)
    try:
        yield
    finally:
        _is_exact.reset(token)


def stream_seed(seed: int, step: int, microbatch: int) -> numpy.random.SeedSequence:
    """Return the seed for the random draws of one microbatch. It is the same in any process, does
    not depend on earlier draws, and differs between microbatches.

    seed (int): The run's seed, 0 or more.
    step (int): Number of the optimizer step, counted from 1.
    microbatch (int): Number of the microbatch within the step, counted from 0.
    RETURNS (SeedSequence): Seed of the ops' generator.
    """
    return numpy.random.SeedSequence((seed, step, microbatch))


@lru_cache(maxsize=None)
def keep_memory() -> bool:
    """Make glibc keep freed memory, permanently and for the whole process.

    By default, glibc returns large arrays to the system and requests them again in the next step,
    and the system then fills them with zeros page by page. That takes a fifth of the time of a
    training step, in which threads wait for each other. The peak memory of a run stays the same.

    RETURNS (bool): Whether the settings were accepted; other C libraries do not have them.
    """
    try:
        mallopt = ctypes.CDLL(None).mallopt
    except (AttributeError, OSError, TypeError):
        return False
    is_set = [mallopt(_MMAP_THRESHOLD, _LARGEST), mallopt(_TRIM_THRESHOLD, _MOST_KEPT)]
    return all(is_set)


@lru_cache(maxsize=None)
def _limit_blas_threads() -> None:
    """Limit BLAS to one thread. Cached, because this searches the loaded libraries."""
    threadpool_limits(1, user_api="blas")
