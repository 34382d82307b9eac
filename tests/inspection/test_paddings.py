"""The padding of each batcher, on lengths small enough to count by hand."""

import numpy as np
import pytest

from tests.training.examples import CLASSIFIER
from thincdialog.api import debug_data, registry
from thincdialog.teachers import IterableTeacher

LENGTHS = [8, 10, 17, 2, 2, 38, 6, 12, 6, 12, 13, 5]
TASK = """
[tasks.quotes]
@teachers = "tests.paddings.v1"

[world.batcher]
@batchers = "thincdialog.{}
"""


@registry.teachers("tests.paddings.v1")
def quotes():
    rows = [(" ".join(["so"] * n), "ab"[n % 2]) for n in LENGTHS]
    return IterableTeacher({"train": rows})


def padding(batches):
    cells = [len(batch) * max(batch) for batch in batches]
    return len(batches), 1 - sum(LENGTHS) / sum(cells), max(cells)


def report_of(batcher):
    return debug_data(CLASSIFIER + TASK.format(batcher))


def found(report):
    return {
        each.name.partition(",")[0]: (each.n_batches, each.fraction, each.largest)
        for each in report.paddings
    }


def test_paddings_are_those_of_the_batches_of_training():
    # The third budget is that of an average batch of the first: 96 cells, 72 and 32 more.
    threes = [LENGTHS[start : start + 3] for start in range(0, 12, 3)]
    sorted_threes = [sorted(LENGTHS)[start : start + 3] for start in range(0, 12, 3)]
    expected = {"Fixed": padding(threes), "Batchsort": padding(sorted_threes)}
    report = report_of('Fixed.v1"\nsize = 3')
    names = list(found(report))
    assert [name.split(".")[1] for name in names] == ["Fixed", "Batchsort", "Words"]
    for name, (n_batches, fraction, largest) in expected.items():
        assert found(report)[f"thincdialog.{name}.v1"] == (
            n_batches, pytest.approx(fraction), largest
        )  # fmt: skip
    budget = round(np.mean([len(batch) * max(batch) for batch in threes]))
    assert report.paddings[2].name == f"thincdialog.Words.v1, budget = {budget}"
    assert report.paddings[2].largest <= budget
    assert not report.pads  # Bags have no padded rectangles.


def test_paddings_begin_with_the_configs_own_batcher():
    report = report_of('Words.v1"\nbudget = 80')
    assert report.paddings[0].name == "thincdialog.Words.v1, budget = 80 (the config's)"
    # (38, 17), (13, 12, 12, 10, 8, 6) and (6, 5, 2, 2), as the batcher's docs say.
    assert found(report)["thincdialog.Fixed.v1"][0] == 3
    assert report.paddings[0].largest == 78


@registry.teachers("tests.paddings_of_features.v1")
def numbers():
    return IterableTeacher(
        {"train": [{"features": [1.0], "labels": ["ab"[n % 2]]} for n in range(8)]}
    )


def test_features_have_no_paddings():
    features = CLASSIFIER[CLASSIFIER.index("[agent]") :]
    config = features + TASK.format('Fixed.v1"\nsize = 3')
    assert not debug_data(config.replace("paddings.v1", "paddings_of_features.v1")).paddings
