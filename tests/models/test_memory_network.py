"""The memory network's scores, compared with their formula."""

import numpy as np
import pytest
from thinc.api import Linear

from tests.layers.check_layer import check_gradients
from tests.models.test_encoders import texts
from tests.ops.array_backends import EACH_OPS, ragged
from thincdialog.api import ConfigError
from thincdialog.models.memory_network import MemoryNetwork
from thincdialog.models.memory_reader import MemoryReader
from thincdialog.models.vocabulary_size import set_vocabulary

NAMES = [[8], [9, 10], []]


def build(ops):
    model = MemoryNetwork(MemoryReader(4, dropout=0.0, n_memories=2))
    set_vocabulary(model, 16)
    model.attrs["class_names"] = ragged(NAMES)
    model.initialize(X=texts(ops, [[8]]), Y=ops.alloc2f(1, len(NAMES)))
    return model


def test_memory_network_scores_the_names_of_classes(ops):
    model, X = build(ops), texts(ops, [[8, 9, 10], [11, 12], []])
    reader, embed = model.layers
    E, P, T = (embed.get_param(name)[:, -4:] for name in "EPT")
    last = [sum((E[word] * P[j] for j, word in enumerate(name)), T[0]) for name in NAMES]
    wanted = reader.predict(X) @ np.array(last).T
    np.testing.assert_allclose(model.predict(X), wanted, rtol=1e-4, atol=1e-6)


@EACH_OPS
def test_memory_network_has_right_gradients(ops):
    X = texts(ops, [[8, 9, 10], [11, 12], [9]])
    check_gradients(build(ops), X, ops, is_differentiable=False)


def test_memory_network_refuses_another_reader_and_another_agent(ops):
    with pytest.raises(ValueError, match="'linear', expected a thincdialog.MemoryReader.v1"):
        MemoryNetwork(Linear(2, 2))
    with pytest.raises(ConfigError, match="names of classes, which .agent. does not have"):
        MemoryNetwork(MemoryReader()).initialize(X=texts(ops, [[8]]))
