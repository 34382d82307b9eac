"""Limit: where it cuts, and how far it reads."""

import itertools
from collections import Counter

import pytest

from tests.mutators.test_mutator import SIZES, epoch, teacher
from thincdialog.errors import ConfigError
from thincdialog.mutators.flatten import Flatten
from thincdialog.mutators.limit import Limit


@pytest.mark.parametrize("streaming", [False, True])
def test_limit_reads_no_further(streaming):
    read = []

    def numbers():
        for number in itertools.count():
            read.append(number)
            yield (f"text {number}", "label")

    shown = teacher([Flatten(), Limit(n_episodes=7)], streaming, read=numbers)
    assert len(epoch(shown)) == 7
    assert max(read) == 6


def test_limit_cuts_the_last_episode_and_only_its_splits():
    for limit in (Limit(n_examples=5), Limit(n_episodes=2, n_examples=5), Limit(4, 5)):
        sizes = Counter(m["id"][0] for m in epoch(teacher([limit], training=False)))
        assert sizes == {"0": 3, "1": 1, **({} if limit.n_episodes == 2 else {"2": 1})}
    only = Limit(n_episodes=1, splits=["train"])
    assert teacher([only]).n_examples == 3
    assert teacher([only], split="dev").n_examples == sum(SIZES)


@pytest.mark.parametrize("numbers", [(0, 0), (-1, 3), (3, -1)])
def test_limit_refuses_numbers_that_keep_nothing(numbers):
    with pytest.raises(ConfigError, match="give 1 or more for one of them"):
        Limit(*numbers)
