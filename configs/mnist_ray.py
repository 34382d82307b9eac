"""Give this file with --code: the model of configs/mnist_ray.cfg, and its data."""

import gzip
import pickle
from pathlib import Path
from typing import Any, Optional

import ml_datasets
import numpy
from ml_datasets._registry import register_loader
from thinc.api import Linear, Model, Relu, chain, registry
from thinc.initializers import zero_init
from thinc.types import Floats2d


@registry.layers("relu_relu_softmax.v1")
def relu_relu_softmax(hidden_width: int, dropout: float) -> Model[Floats2d, Floats2d]:
    """Two ReLU layers, and a score for each class. The softmax over these is a part of the loss,
    and of the replies.

    hidden_width (int): Of both layers.
    dropout (float): Probability of zeroing a cell of their outputs.
    """
    return chain(
        Relu(hidden_width, dropout=dropout),
        Relu(hidden_width, dropout=dropout),
        Linear(init_W=zero_init),
    )


@register_loader("mnist_in")
def mnist_in(folder: Optional[str] = None) -> Any:
    """MNIST, as ml_datasets gives it, in the order of its file.

    folder (Optional[str]): Where a copy of mnist.pkl.gz is, from somebody whom you trust: a
        pickle can run code. None: it is downloaded.
    """
    if folder is None:
        return ml_datasets.mnist(shuffle=False)
    with gzip.open(Path(folder) / "mnist.pkl.gz", "rb") as file:
        parts = pickle.load(file, encoding="bytes")
    return tuple(
        (images.reshape(len(images), -1).astype("f") / 255, numpy.eye(10, dtype="f")[labels])
        for images, labels in parts
    )
