"""Each unit of work counts once, even if workers or servers die or are late."""

import json

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from thincdialog.runners.cluster.ledger import Ledger


@settings(max_examples=60)
@given(st.data(), st.integers(1, 4))
@pytest.mark.slow
def test_ledger_each_unit_of_an_epoch_is_done_once(data, n_workers):
    """The number of shares, and their numbers of units, differ from epoch to epoch."""
    ledger, first, n_before = Ledger(), 0, 1
    for epoch in range(3):
        sizes = data.draw(st.lists(st.integers(0, 6), min_size=1, max_size=3))
        n, held, done = len(sizes), {}, []
        before = ledger.start_epoch(n)
        # The states of worlds at the ends of the last epoch, unless its shares were others.
        known = epoch and n == n_before
        assert before == [f"{epoch - 1}/{share}" if known else None for share in range(n)]
        assert ledger.first == first
        ends = [first + size * n + share for share, size in enumerate(sizes)]
        while not ledger.is_over:
            worker = data.draw(st.integers(0, n_workers - 1))
            if worker not in held:
                at = data.draw(st.integers(0, n)), n
                unit = ledger.hand_out(worker, at=at)
                if unit is not None:
                    held[worker] = unit
                    shares = [(each - first) % n for each in held.values()]
                    assert n == 1 or len(shares) == len(set(shares))
                continue
            unit, what = held.pop(worker), data.draw(st.sampled_from(["done", "lost", "saved"]))
            assert ledger.is_wanted(worker, unit)
            share = (unit - first) % n
            if unit >= ends[share]:
                ledger.past_end(worker, f"{epoch}/{share}")
            elif what == "lost":
                ledger.back(worker)
                assert not ledger.is_wanted(worker, unit)
            elif what == "saved":
                # Another server takes over, and no worker has a unit any more.
                held.clear()
                state = json.loads(json.dumps(ledger.state()))
                ledger = Ledger()
                ledger.restore(state)
            else:
                ledger.done(worker)
                assert not ledger.is_wanted(worker, unit)
                done.append(unit)
        for worker in list(held):  # Workers past the end of the epoch return nothing.
            share = (held.pop(worker) - first) % n
            ledger.past_end(worker, f"{epoch}/{share}")
        units = [range(first + share, end, n) for share, end in enumerate(ends)]
        assert sorted(done) == sorted(unit for share in units for unit in share)
        first, n_before = max(ends), n


def test_ledger_a_worker_keeps_its_share_until_another_one_is_free():
    ledger = Ledger()
    ledger.start_epoch(3)
    assert ledger.hand_out(0, at=(2, 3)) == 2
    assert ledger.hand_out(1) == 0
    ledger.done(0)
    assert ledger.hand_out(0, at=(2, 3)) == 5
    ledger.past_end(0)
    assert ledger.hand_out(0, at=(2, 3)) == 1  # The share that no worker has.
    ledger.past_end(0)
    # The other worker has the only share that is left.
    assert ledger.hand_out(0, at=(1, 3)) is None
    ledger.restore(ledger.state())  # The other worker has died.
    assert ledger.hand_out(0, at=(1, 3)) == 0
