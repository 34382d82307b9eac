"""Give this file with --code: the model of configs/mnist_ray.cfg, and its data."""

import gzip
from pathlib import Path
from pickle import Unpickler, UnpicklingError
from typing import Any, Optional

import numpy
from ml_datasets._registry import register_loader
from ml_datasets.loaders.mnist import MNIST_URL
from ml_datasets.util import get_file
from thinc.api import Model, Relu, Softmax, chain, registry
from thinc.types import Floats2d


@registry.layers("relu_relu_softmax.v1")
def relu_relu_softmax(hidden_width: int, dropout: float) -> Model[Floats2d, Floats2d]:
    """Two ReLU layers, and a probability of each class.

    hidden_width (int): Of both layers.
    dropout (float): Probability of zeroing a cell of their outputs.
    """
    return chain(
        Relu(hidden_width, dropout=dropout),
        Relu(hidden_width, dropout=dropout),
        Softmax(),
    )


@register_loader("mnist_in")
def mnist_in(folder: Optional[str] = None) -> Any:
    """MNIST, as ml_datasets gives it, in the order of its file.

    folder (Optional[str]): Where mnist.pkl.gz is; None: ml_datasets downloads it.
    """
    name = "mnist.pkl.gz"
    path = get_file(name, origin=MNIST_URL) if folder is None else Path(folder) / name
    with gzip.open(path, "rb") as file:
        parts = Arrays(file, encoding="bytes").load()
    return tuple(
        (images.reshape(len(images), -1).astype("f") / 255, numpy.eye(10, dtype="f")[labels])
        for images, labels in parts
    )


class Arrays(Unpickler):
    """Reads a pickle that holds arrays, and nothing else: others could run any code."""

    def find_class(self, module: str, name: str) -> Any:
        known = {
            "ndarray": numpy.ndarray,
            "dtype": numpy.dtype,
            "_reconstruct": numpy.zeros(0).__reduce__()[0],
        }
        if not module.startswith("numpy") or name not in known:
            raise UnpicklingError(f"{module}.{name} is no part of an array")
        return known[name]
