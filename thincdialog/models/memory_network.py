"""A memory network that answers with words of its stories."""

from typing import Any, Callable, Optional, Tuple

from thinc.api import Model
from thinc.types import Floats2d, Ragged
from thinc.util import get_width

from ..errors import ConfigError, Problem
from ..registry import registry

InT = Ragged
OutT = Floats2d


@registry.models("thincdialog.MemoryNetwork.v1")
def MemoryNetwork(reader: Model[Ragged, Floats2d]) -> Model[InT, OutT]:
    """Read stories, and score the names of a classifier's classes as answers (logits).

        Y[class] = (last vector of the class's name) . reader(X)

    The name of a class is embedded like a line of a story, with the same table. Only the last of
    its vectors is used, which corresponds to the vector of a line that the last hop reads.

    reader (Model): A ``thincdialog.MemoryReader.v1``.
    X (Ragged): Token ids and segments, int32, shape (n_tokens, 2).
    RETURNS (Model[Ragged, Floats2d]): Output shape (n_examples, n_classes).
    RAISES (ValueError): If the reader is another model.
    RAISES (ConfigError): On ``initialize``, if the agent is not a classifier.
    SOURCE: Sukhbaatar et al. 2015, https://arxiv.org/abs/1503.08895, section 2.2
    """
    embed = next((node for node in reader.walk() if node.name == "line_embed"), None)
    if embed is None:
        raise ValueError(f"reader is '{reader.name}', expected a thincdialog.MemoryReader.v1")
    # The agent, a classifier, sets this to the tokens of its classes' names.
    attrs = {"class_names": None}
    layers = [reader, embed]
    return Model(
        "memory_network", forward, init=init, layers=layers, dims={"nO": None}, attrs=attrs
    )


def forward(model: Model[InT, OutT], X: InT, is_train: bool) -> Tuple[OutT, Callable]:
    ops, (reader, embed) = model.ops, model.layers
    U, backprop_reader = reader(X, is_train)  # (n_examples, width)
    lines, backprop_names = embed(model.attrs["class_names"], False)
    width = U.shape[1]
    # (n_classes, width). All names have the same segment, so its vector adds the same number to
    # all scores.
    W = ops.as_contig(lines.dataXd[:, -width:])

    def backprop(dY: OutT) -> InT:
        d_lines: Any = ops.xp.zeros_like(lines.dataXd)
        d_lines[:, -width:] = ops.gemm(dY, U, trans1=True)
        backprop_names(Ragged(d_lines, lines.lengths))
        return backprop_reader(ops.gemm(dY, W))

    return ops.gemm(U, W, trans2=True), backprop


def init(model: Model[InT, OutT], X: Optional[InT] = None, Y: Optional[OutT] = None) -> None:
    if model.attrs["class_names"] is None:
        text = "[agent.model] scores the names of classes, which [agent] does not have"
        raise ConfigError([Problem("", text, 'set @agents = "thincdialog.Classifier.v1"')])
    model.layers[0].initialize(X=X)
    if Y is not None:
        model.set_dim("nO", get_width(Y))
