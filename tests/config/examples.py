"""Configs and registered functions for the tests of configs."""

from typing import Any, Callable, Dict, List, Literal, Optional

from thinc.api import Model

from thincdialog.api import Agent, registry

GOOD = """# Trains a ranker.
# For the tests.

[paths]
train = null

# Who talks about what.
[tasks.dialogue]
@teachers = "thincdialog.Conversations.v1"
train = ${paths.train}
# Whose turns are answered.
label_speaker = "both"

[tasks.dialogue.mutators.*.flatten]
@mutators = "thincdialog.Flatten.v1"
context_length = 4

[tokenizer]
@tokenizers = "thincdialog.Words.v1"
min_freq = 2

[agent]
@agents = "thincdialog.Ranker.v1"
history_size = 4

[agent.model]
@models = "thincdialog.BiEncoder.v1"

[agent.model.encoder]
@models = "thincdialog.BagEncoder.v1"
width = 8

[training]
max_steps = 10

[training.optimizer]
@optimizers = "Adam.v1"
use_averages = true

[training.optimizer.learn_rate]
@schedules = "warmup_linear.v1"
initial_rate = 0.01
warmup_steps = 2
total_steps = 10
"""


@registry.layers("test_config.Picky.v1")
def build_picky(
    width: int,
    rate: float = 0.5,
    kind: Literal["soft", "hard"] = "soft",
    names: Optional[List[str]] = None,
    weights: Optional[Dict[str, float]] = None,
    inner: Optional[Model] = None,
    *,
    deep: bool = False,
    activation: Callable = str.upper,
) -> "Picky":
    """A layer that checks its arguments.

    width (int): Units of the layer, 1 or more;
        at most 100.
    rate (float): How much to drop, 0.0 to 1.0.
    kind (str): "soft" or "hard".
    """
    if not 0 <= rate <= 1:
        raise ValueError(f"rate = {rate}, expected 0.0 to 1.0")
    return Picky(width=width, kind=kind, names=names, weights=weights, inner=inner, deep=deep)


@registry.layers("test_config.Chain.v1")
def build_chain(first: Any, *others: Any, label: str = "chain") -> "Picky":
    return Picky(parts=[first, *others], label=label)


@registry.layers("test_config.Pair.v1")
def build_pair(first: Any, second: Any) -> "Picky":
    return Picky(parts=[first, second])


@registry.layers("test_config.Lists.v1")
def build_lists(parts: List[Any], options: Optional[Dict[str, Any]] = None) -> "Picky":
    return Picky(parts=parts, options=options)


@registry.agents("test_config.Talker.v1")
def build_talker(layer: Any = None) -> "Picky":
    """An agent that holds its argument."""
    return Picky(layer=layer)


class Picky(Agent, Model):
    """An object that the functions above build. It holds its arguments."""

    def __init__(self, **arguments: Any):
        Model.__init__(self, "picky", lambda model, X, is_train: (X, lambda dY: dY))
        self.arguments = arguments


def with_agent(block: str) -> str:
    """Return a config whose agent holds one layer, ``[agent.layer]``, given as a block."""
    start = GOOD[: GOOD.index("[agent]")] + '[agent]\n@agents = "test_config.Talker.v1"\n\n'
    return start + block
