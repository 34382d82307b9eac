"""A run depends on nothing but its config and data, bit for bit."""

import random
import subprocess
import sys

import numpy
import pytest

from tests.processes import slow
from tests.runners.resuming import remains, same
from tests.training.examples import RANKER, quietly_train, weights
from thincdialog.api import registry
from thincdialog.files.saved_model import BEST, LAST

# As many kinds of random draws and sums as one run can have: subwords and candidates, order of
# batches, dropped tokens and cells, class order, sums over microbatches, rows of tables, averages.
MANY_DRAWS = (
    RANKER.replace("thincdialog.Words.v1", "thincdialog.Subwords.v1")
    .replace("[agent]\n", "size = 400\n\n[agent]\n", 1)
    .replace('candidates = "inline"', 'candidates = "batch"')
    .replace("BagEncoder.v1", "CNNEncoder.v1")
    .replace("dropout = 0.2", "dropout = 0.2\ntoken_dropout = 0.2")
    .replace("BatchWorld.v1", "DynamicBatchWorld.v1")
    .replace("Fixed.v1", "Batchsort.v1")
    .replace('"Adam.v1"', '"thincdialog.LazyAdam.v1"\nuse_averages = true\naverage_every = 2')
    .replace("max_epochs = 2.0", "max_epochs = 2.0\naccumulate_gradient = 3")
    + "\n[evaluation]\nn_candidates = 9\nmax_examples = 20\n"
    + '\n[baselines.chance]\n@agents = "thincdialog.RandomCandidate.v1"\n'
)


@pytest.mark.slow
@pytest.mark.parametrize("text", [RANKER, MANY_DRAWS], ids=["plain", "many draws"])
def test_determinism_twice_in_two_processes_gives_the_same_bits(tmp_path, text):
    config = tmp_path / "config.cfg"
    config.write_text(text)
    outputs = []
    for name, hash_seed, threads in (("a", "1", "1"), ("b", "2", "4")):
        names = ("OMP_NUM_THREADS", "OPENBLAS_NUM_THREADS", "BLIS_NUM_THREADS")
        path = {"PATH": "", "PYTHONPATH": ":".join(sys.path), "PYTHONHASHSEED": hash_seed}
        done = subprocess.run(
            [sys.executable, "-m", "thincdialog", "train", str(config), "-o", str(tmp_path / name)],
            env={**path, **dict.fromkeys(names, threads)},
            check=True,
            capture_output=True,
            text=True,
        )
        results = done.stdout[done.stdout.index("\ndev ") :]
        outputs.append(results.replace(str(tmp_path / name), ""))
    assert outputs[0] == outputs[1]
    for model in (BEST, LAST):
        a, b = tmp_path / "a" / model, tmp_path / "b" / model
        for path in sorted(a.rglob("*")):
            assert path.is_dir() or path.read_bytes() == (b / path.relative_to(a)).read_bytes()
    left = remains(tmp_path / "a")
    assert len(left["rows"]) == 3 and left["state"]["optimizer"]["arrays"]
    same(remains(tmp_path / "b"), left)


@registry.callbacks("tests.draw.v1")
def draw(n: int):
    """Draw numbers from every generator there is."""

    def callback(info, agent):
        agent.model.ops.get_dropout_mask((n,), 0.5)
        random.random()
        numpy.random.random(n)

    return callback


@pytest.mark.parametrize("text", [RANKER, slow(MANY_DRAWS)], ids=["plain", "many draws"])
def test_determinism_weights_depend_on_no_evaluation_nor_draws_before(tmp_path, text):
    """Draws depend on (seed, step, microbatch), whatever happened before."""
    found = set()
    for n, every, batch_size, candidates in ((0, 0, 64, 5), (1, 1, 3, 20), (5, 1, 64, 5)):
        block = f'\n[training.callbacks.draw]\n@callbacks = "tests.draw.v1"\nn = {n}\n'
        quietly_train(
            text + block,
            tmp_path / str(n),
            training__max_steps=6,
            training__eval_every_epochs=0.0,
            training__eval_every_steps=every,
            evaluation__world__batcher__size=batch_size,
            evaluation__n_candidates=candidates,
        )
        found.add(weights(tmp_path / str(n)))
    assert len(found) == 1


def test_determinism_another_seed_gives_other_weights(tmp_path):
    for seed in (3, 4):
        quietly_train(output=tmp_path / str(seed), system__seed=seed, training__max_steps=2)
    assert weights(tmp_path / "3") != weights(tmp_path / "4")
