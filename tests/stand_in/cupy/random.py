import numpy as np

from ._array import wrap
from ._counts import launched, made_generator

_global = np.random.RandomState(0)


class Philox4x3210:
    def __init__(self, seed=None, *, size=-1):
        launched("random states", 2)
        made_generator("states")
        self.generator = np.random.Philox(np.random.SeedSequence(seed))


XORWOW = Philox4x3210


class Generator:
    def __init__(self, bits):
        made_generator("generator")
        self._generator = np.random.Generator(bits.generator)

    def random(self, size=None, dtype=np.float64, out=None):
        launched("random")
        return wrap(self._generator.random(size=size, dtype=dtype))


def seed(seed=None):
    made_generator("seed")
    _global.seed(int(seed) % 2**32)


def uniform(low=0.0, high=1.0, size=None, dtype=float):
    launched("uniform", 2)
    return wrap(_global.uniform(low, high, size).astype(dtype))
