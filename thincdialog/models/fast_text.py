"""A fastText classifier: mean of embeddings, then a linear layer."""

from typing import Callable, Optional, cast

from thinc.api import Model, chain
from thinc.initializers import uniform_init, zero_init
from thinc.types import Floats2d, Ragged
from thinc.util import partial

from ..layers.bag_embed import BagEmbed
from ..layers.projection import Projection
from ..registry import registry


@registry.models("thincdialog.FastText.v1")
def FastText(width: int = 100, init_E: Optional[Callable] = None) -> Model[Ragged, Floats2d]:
    """Build a linear classifier with a bottleneck: average the embeddings of all tokens (words and
    n-grams), then apply a linear layer without a bias. The agent ``thincdialog.FastText.v1``
    trains it in one compiled kernel; the agent ``thincdialog.Classifier.v1`` can train it, too.

        Y[b] = W (sum_t E[id_t] / n)

    width (int): Width of an embedding. With a multiple of 16, rows share no cache line, so
        several workers do not write to the same one.
    init_E (Optional[Callable]): Initializer of the table; uniform in +-1/width if None.
    X (Ragged): Token ids and segments, int32, shape (n_tokens, 2); segments are ignored.
    RETURNS (Model[Ragged, Floats2d]): Output shape (n_examples, n_classes), logits.
    RAISES (ValueError): If width is below 1.
    SOURCE: Joulin et al. 2016, https://arxiv.org/abs/1607.01759
    """
    if width < 1:
        raise ValueError(f"width = {width}, but it must be 1 or more")
    small = partial(uniform_init, lo=-1 / width, hi=1 / width)
    table = BagEmbed(width, pooling="mean", init_E=init_E or small)
    output = Projection(None, width, init_W=zero_init)
    model = cast(Model[Ragged, Floats2d], chain(table, output))
    model.name = "fast_text"
    model.set_ref("table", table)
    model.set_ref("output", output)
    return model
