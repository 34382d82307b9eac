"""Layers of Thinc get their ids on the GPU; our own layers read them on the host."""

import numpy as np
import pytest
from thinc.api import (
    Embed,
    HashEmbed,
    Linear,
    Model,
    chain,
    concatenate,
    fix_random_seed,
    reduce_mean,
    with_array,
)
from thinc.layers.array_getitem import ints_getitem

from tests.agents.colours import make, teacher_of
from tests.ops.array_backends import backend
from thincdialog.api import Message
from thincdialog.layers.bag_embed import BagEmbed
from thincdialog.layers.dropout import drop_tokens

pytestmark = pytest.mark.gpu
ROWS = [("red red", "stop"), ("green green green", "go"), ("blue", "wait")]
EXAMPLES = [Message(text=text, labels=[label], id=label) for text, label in ROWS]


def of_thinc(embed):
    return chain(with_array(embed), reduce_mean(), Linear(8))


def first_column():
    return ints_getitem((slice(0, None), 0))


ENCODERS = {
    "Embed": lambda: of_thinc(chain(first_column(), Embed(8, 100))),
    "HashEmbed": lambda: of_thinc(HashEmbed(8, 50, seed=3, column=0)),
    "after our own layer": lambda: chain(drop_tokens(0.5), ENCODERS["HashEmbed"]()),
    "next to our own layer": lambda: concatenate(ENCODERS["HashEmbed"](), BagEmbed(8)),
}


def trained(gpu_id, encoder, **options):
    with backend(gpu_id) as ops:
        fix_random_seed(0)
        agent = make("agents", "Classifier", make("models", "Classifier", encoder()), **options)
        agent.initialize(teacher_of(ROWS), tokenizer=make("tokenizers", "Words"), seed=0)
        for step in range(3):
            agent.begin_microbatch(0, step + 1, 0)
            agent.batch_act(EXAMPLES)
            agent.update(make("optimizers", "SGD.v1", 0.5))
        return ops.to_numpy(agent.weights)


@pytest.mark.parametrize("name", ENCODERS)
def test_uploaded_ids_layers_of_thinc_train_on_a_gpu_as_on_the_cpu(name):
    on_gpu, on_cpu = (trained(gpu_id, ENCODERS[name]) for gpu_id in (0, -1))
    np.testing.assert_allclose(on_gpu, on_cpu, rtol=1e-4, atol=1e-5)


def test_uploaded_ids_integers_of_a_collate_function_reach_a_users_layer_on_the_gpu():
    import cupy

    seen = []

    def forward(model, X, is_train):
        seen.append(type(X))
        rows = model.get_param("E")[X[:, 0]]
        return rows, lambda dY: model.ops.xp.zeros_like(X)

    def table():
        layer = Model("lengths", forward, params={"E": None}, dims={"nO": 4})
        layer.set_param("E", layer.ops.alloc2f(10, 4) + 1)
        return chain(layer, Linear(4))

    def n_words(batch, tokens):
        return np.array([[len(text.split())] for text in batch.column("text")])

    trained(0, table, collate=n_words)
    assert seen and set(seen) == {cupy.ndarray}
