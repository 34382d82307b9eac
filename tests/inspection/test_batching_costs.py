"""The costs of reading and of padding the training data."""

import re
import time

import numpy as np
import pytest

from tests.training.examples import CLASSIFIER
from thincdialog.api import Message, Teacher, debug_data, registry
from thincdialog.loader import readers
from thincdialog.teachers import IterableTeacher

LENGTHS = [8, 10, 17, 2, 2, 38, 6, 12, 6, 12, 13, 5]
TASK = """
[tasks.quotes]
@teachers = "tests.batching_costs.v1"

[world.batcher]
@batchers = "thincdialog.{}
"""


@registry.teachers("tests.batching_costs.v1")
def quotes():
    rows = [(" ".join(["so"] * n), "ab"[n % 2]) for n in LENGTHS]
    return IterableTeacher({"train": rows})


def padding(batches):
    cells = [len(batch) * max(batch) for batch in batches]
    return len(batches), 1 - sum(LENGTHS) / sum(cells), max(cells)


def costs(batcher):
    return debug_data(CLASSIFIER + TASK.format(batcher)).costs


def found(costs):
    return {
        each.name.partition(",")[0]: (each.n_batches, each.fraction, each.largest)
        for each in costs.paddings
    }


def test_batching_costs_are_those_of_the_batches_that_would_be_cut():
    # The third budget is that of an average batch of the first: 96 cells, 72 and 32 more.
    threes = [LENGTHS[start : start + 3] for start in range(0, 12, 3)]
    sorted_threes = [sorted(LENGTHS)[start : start + 3] for start in range(0, 12, 3)]
    expected = {"Fixed": padding(threes), "Batchsort": padding(sorted_threes)}
    report = costs('Fixed.v1"\nsize = 3')
    names = list(found(report))
    assert [name.split(".")[1] for name in names] == ["Fixed", "Batchsort", "Words"]
    for name, (n_batches, fraction, largest) in expected.items():
        assert found(report)[f"thincdialog.{name}.v1"] == (
            n_batches, pytest.approx(fraction), largest
        )  # fmt: skip
    budget = round(np.mean([len(batch) * max(batch) for batch in threes]))
    assert report.paddings[2].name == f"thincdialog.Words.v1, budget = {budget}"
    assert report.paddings[2].largest <= budget
    assert report.n_examples == 12 and report.reading_seconds > 0
    assert not report.pads  # Bags have no padded rectangles.


def test_batching_costs_begin_with_the_configs_own_batcher():
    report = costs('Words.v1"\nbudget = 80')
    assert report.paddings[0].name == "thincdialog.Words.v1, budget = 80 (the config's)"
    # (38, 17), (13, 12, 12, 10, 8, 6) and (6, 5, 2, 2), as the batcher's docs say.
    assert found(report)["thincdialog.Fixed.v1"][0] == 3
    assert report.paddings[0].largest == 78


def test_batching_costs_of_features_are_those_of_reading_alone():
    features = CLASSIFIER[CLASSIFIER.index("[agent]") :]
    config = features + TASK.format('Fixed.v1"\nsize = 3').replace("costs.v1", "features.v1")
    report = debug_data(config).costs
    assert (report.n_examples, report.encoding_seconds, report.paddings) == (8, 0.0, [])


@registry.teachers("tests.batching_features.v1")
def numbers():
    return IterableTeacher(
        {"train": [{"features": [1.0], "labels": ["ab"[n % 2]]} for n in range(8)]}
    )


SIZED = 'Fixed.v1"\nsize = 3'


class Waiting:
    """Episodes by number, from a slow source."""

    def __len__(self):
        return 20

    def __getitem__(self, number):
        time.sleep(0.01)
        return [Message(text=f"so {number}", labels=["ab"[number % 2]])]


@registry.teachers("tests.batching_waiting.v1")
def waiting():
    return Teacher({"train": Waiting()}, streaming=True)


def test_costs_of_reading_say_which_workers_would_help(monkeypatch):
    with monkeypatch.context() as patch:
        patch.setattr(readers, "LOOK_SECONDS", 60.0)
        (told,) = costs(SIZED).workers
    assert re.fullmatch("none, as reading .* takes less than .*", told)
    config = CLASSIFIER + TASK.format(SIZED).replace("batching_costs", "batching_waiting")
    (found,) = debug_data(config).costs.workers
    assert re.fullmatch(r"16 threads, as reading .* waits \d+ % of its time", found)
