"""Collate functions of users build a model's input, for example a picture and a question."""

import numpy as np
import pytest
from thinc.api import NumpyOps, Relu, chain

from tests.ops.array_backends import EACH_OPS
from thincdialog.agents.classifier import ClassifierAgent
from thincdialog.agents.collating import put_together
from thincdialog.api import Batch, Message
from thincdialog.contract import CodeError
from thincdialog.layers.flatten import Flatten
from thincdialog.layers.parts import Parts
from thincdialog.teachers import IterableTeacher

from .colours import build, learn, make, messages

ANSWERS = ("red", "green", "blue")


def pictures(n, seed):
    """Make pictures with two squares, and a question about one of them. Neither the picture nor the
    question is enough for the answer."""
    rng = np.random.default_rng(seed)
    rows = []
    for _ in range(n):
        squares = rng.integers(3, size=2)
        image = rng.normal(0, 0.1, (3, 2, 2)).astype("f")
        for side, colour in enumerate(squares):
            image[colour, :, side] += 1
        side = int(rng.integers(2))
        text = f"what is {('left', 'right')[side]}"
        rows.append({"text": text, "image": image, "labels": [ANSWERS[squares[side]]]})
    return rows


def text_and_image(batch, tokens):
    return tokens, np.stack(batch.column("image"))


def encoder():
    return chain(Parts(make("models", "BagEncoder", width=8), Flatten()), Relu(32))


def classifier():
    return make("models", "Classifier", encoder())


def ranker():
    replies = make("models", "BagEncoder", width=32)
    return make("models", "BiEncoder", encoder(), replies, share="nothing")


def accuracy(agent, rows):
    replies = agent.batch_act([Message({**row, "labels": None}) for row in rows])
    return np.mean([reply["text"] == row["labels"][0] for reply, row in zip(replies, rows)])


@pytest.mark.parametrize(
    "kind, model, options, shape",
    [
        ("Classifier", classifier, {}, (3, 2, 2)),
        (
            "Classifier",
            classifier,
            {},
            (3, 4),
        ),  # Rows of features, as of parts of a picture.
        ("Ranker", ranker, {"candidates": "vocab"}, (3, 2, 2)),
    ],
)
def test_collate_an_agent_learns_from_a_picture_and_a_question(
    kind, model, options, shape, tmp_path
):
    known, unseen = (
        [{**row, "image": row["image"].reshape(shape)} for row in pictures(n, seed)]
        for n, seed in ((400, 0), (60, 1))
    )
    agent, teacher = build(kind, model, known, collate=text_and_image, **options)
    learn(agent, teacher, make("optimizers", "Adam.v1", 0.01), epochs=30, size=20)
    assert accuracy(agent, unseen) > 0.95
    agent.to_disk(tmp_path)
    other = make("agents", kind, model(), collate=text_and_image, **options)
    other.from_disk(tmp_path, tokenizer=make("tokenizers", "Words"))
    assert accuracy(other, unseen) == accuracy(agent, unseen)


def test_collate_needs_no_tokenizer():
    def two_arrays(batch, tokens):
        assert tokens is None
        images = np.stack(batch.column("image"))  # (n, 3, 2, 2)
        return images, images.mean(axis=(2, 3))

    def model():
        return make("models", "Classifier", chain(Parts(Flatten(), Relu(4)), Relu(16)))

    rows = [{**row, "text": ""} for row in pictures(20, 0)]
    agent, teacher = build("Classifier", model, rows, lambda: None, collate=two_arrays)
    learn(agent, teacher, make("optimizers", "Adam.v1", 0.01), epochs=1)


def test_collate_of_an_agent_class_is_the_default():
    class Pictures(ClassifierAgent):
        collate = staticmethod(text_and_image)

    assert Pictures(classifier()).collate is text_and_image
    assert Pictures(classifier(), collate=len).collate is len
    assert ClassifierAgent(classifier()).collate is None


def test_collate_gets_the_fields_that_observe_adds_when_the_weights_are_drawn():
    class Measuring(ClassifierAgent):
        def observe(self, message):
            length = np.array([len(message["text"])], dtype="f")
            return super().observe(Message(message, length=length))

        @staticmethod
        def collate(batch, tokens):
            return np.stack(batch.column("length"))

    layer = Relu(4)
    agent = Measuring(make("models", "Classifier", layer))
    rows = messages([{"text": text, "labels": [text]} for text in ("a", "bcd")])
    agent.initialize(IterableTeacher({"train": [[row] for row in rows]}).for_split("train"))
    assert layer.get_dim("nI") == 1


@EACH_OPS
def test_collate_puts_floats_on_the_device_and_leaves_ids_on_the_host(ops):
    batch = Batch.of(messages([{"text": "a"}, {"text": "b"}]))
    given = (np.ones((2, 3)), np.arange(2), np.ones((2, 1, 2, 1), dtype="f"))
    found = put_together(lambda batch, tokens: given, batch, None, ops)
    assert [part.dtype.name for part in found] == ["float32", "int32", "float32"]
    on_device, ids, more = (type(part) for part in found)
    assert (on_device, ids, more) == (ops.xp.ndarray, np.ndarray, ops.xp.ndarray)


@pytest.mark.parametrize(
    "given",
    [None, "text", (), np.ones((3, 2)), (np.ones((2, 2)), np.ones(3)), np.array([None, None])],
    ids=["None", "text", "nothing", "rows", "one part", "objects"],
)
def test_collate_that_returns_something_else_is_an_error(given):
    def careless(batch, tokens):
        return given

    batch = Batch.of(messages([{"text": "a"}, {"text": "b"}]))
    with pytest.raises(CodeError, match=r"test_collating.py:\d+  careless\(\) returned"):
        put_together(careless, batch, None, NumpyOps())


@pytest.mark.parametrize("dtype", [None, "f"], ids=["None", "nan"])
def test_collate_names_fields_that_no_example_has(dtype):
    def misspelt(batch, tokens):
        batch.column("length")
        batch.column("lengths")
        return np.array(batch.column("lenght"), dtype=dtype)

    batch = Batch.of(messages([{"length": 1.0}, {"length": 2.0, "lengths": 3.0}]))
    wanted = r"test_collating.py:\d+  misspelt\(\) needs 'lenght', which no example here has"
    with pytest.raises(CodeError, match=wanted):
        put_together(misspelt, batch, None, NumpyOps())


def test_collate_may_fill_in_fields_that_no_example_has():
    def optional(batch, tokens):
        return np.array([[length or 0.0] for length in batch.column("length")])

    batch = Batch.of(messages([{"text": "a"}]))
    assert put_together(optional, batch, None, NumpyOps()).tolist() == [[0.0]]


def test_collate_refuses_a_layer():
    with pytest.raises(
        ValueError, match="collate is the layer 'flatten', expected a registered collate"
    ):
        make("agents", "Classifier", classifier(), collate=Flatten())
