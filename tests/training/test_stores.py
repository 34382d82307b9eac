"""Training from stores: the same as from the data themselves, and never from stale ones."""

import pytest

from tests.training.examples import CLASSIFIER, RANKER, quietly_train, weights
from tests.training.two_tasks import TWO_TASKS
from thincdialog.ops.compiled import load_kernels

COFFEE = RANKER[: RANKER.index("[tokenizer]")]
IN_BATCH = RANKER.replace('candidates = "inline"', 'candidates = "batch"\nspeaker_tokens = true')
STAR = """
[tokenizer]
@tokenizers = "thincdialog.HashNgrams.v1"
n_rows = 500

[agent]
@agents = "thincdialog.StarSpace.v1"
candidates = "CANDIDATES"
history_size = 3

[agent.model]
@models = "thincdialog.StarSpace.v1"
width = 8

[training]
max_epochs = 2.0
score = "hits@1"
n_samples = 0

[evaluation]
n_candidates = 5

[training.optimizer]
@optimizers = "thincdialog.SparseAdagrad.v1"
learn_rate = 0.05
"""
CLASSES = (
    COFFEE.replace("flatten]", "last]").replace("Flatten", "LastTurn")
    + CLASSIFIER
    + "\n[training]\nmax_epochs = 2.0\n"
)
FAST_TEXT = (
    CLASSES[: CLASSES.index("[tokenizer]")]
    + """
[tokenizer]
@tokenizers = "thincdialog.WordNgrams.v1"
n_rows = 900

[agent]
@agents = "thincdialog.FastText.v1"

[agent.model]
@models = "thincdialog.FastText.v1"
width = 8

[training]
max_epochs = 2.0

[training.optimizer]
@optimizers = "thincdialog.SparseSGD.v1"
grad_clip = 0.0
learn_rate = 0.5
"""
)
WORDS = '@batchers = "thincdialog.Words.v1"\nbudget = 300\n'
LINES = RANKER.replace('@batchers = "thincdialog.Fixed.v1"\nsize = 16\n', WORDS).replace(
    'candidates = "inline"', 'candidates = "batch"\nhistory_size = 2'
)
CONFIGS = {
    "ranker, inline": RANKER,
    "ranker, words": LINES,
    "ranker, long episodes": RANKER.replace("mutators.*.flatten", "mutators.*.limit").replace(
        "Flatten.v1", 'Limit.v1"\nn_episodes = 20\nx = "' if False else "EpisodeReverse.v1"
    ),
    "star space": COFFEE + STAR.replace("CANDIDATES", "batch"),
    "star space, fixed": COFFEE + STAR.replace("CANDIDATES", "fixed"),
    "classifier": CLASSES,
    "fast text": FAST_TEXT,
    "mixture": TWO_TASKS.replace("turns = [1, 3, 2, 1, 1, 4, 2, 1]", "turns = [1, 1, 1, 1, 1]")
    .replace('"tests.recorder.v1"', '"thincdialog.Ranker.v1"\ncandidates = "batch"')
    .replace("tea milk", "tea blue"),
}


@pytest.mark.parametrize("name", CONFIGS)
def test_training_from_a_store_gives_the_same_bits(name, tmp_path):
    config = CONFIGS[name]
    if "star" in name or "fast" in name:
        load_kernels("texts")
    held, _ = quietly_train(config, tmp_path / "held")
    changes = {"loader.store": str(tmp_path / "store")}
    first, _ = quietly_train(config, tmp_path / "first", **changes)
    again, _ = quietly_train(config, tmp_path / "again", **changes)
    for result, folder in ((first, "first"), (again, "again")):
        assert weights(tmp_path / folder) == weights(tmp_path / "held")
        assert result.scores == held.scores
    has_tokens = "long" not in name
    assert bool(list((tmp_path / "store").glob("*/train/tokens-*"))) == has_tokens
