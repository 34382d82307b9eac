"""Each unit of work counts once, even if workers or servers die or are late."""

from hypothesis import given, settings
from hypothesis import strategies as st

from thincdialog.runners.cluster.ledger import Ledger


@settings(max_examples=40)
@given(st.data(), st.integers(0, 12), st.integers(1, 4))
def test_ledger_each_unit_of_an_epoch_is_done_once(data, n_units, n_workers):
    ledger, held, done = Ledger(), {}, []
    for epoch in range(2):
        ledger.start_epoch()
        first = ledger.first
        assert first == epoch * n_units
        while not ledger.is_over:
            worker = data.draw(st.integers(0, n_workers - 1))
            if worker not in held:
                unit = ledger.hand_out(worker)
                if unit is not None:
                    held[worker] = unit
                continue
            unit, what = held.pop(worker), data.draw(st.sampled_from(["done", "lost", "saved"]))
            assert ledger.is_wanted(worker, unit)
            if unit >= first + n_units:
                ledger.past_end(worker)
            elif what == "lost":
                ledger.back(worker)
                assert not ledger.is_wanted(worker, unit)
            elif what == "saved":
                # Another server takes over, and no worker has a unit any more.
                held.clear()
                state = ledger.state()
                ledger = Ledger()
                ledger.restore(state)
            else:
                ledger.done(worker)
                assert not ledger.is_wanted(worker, unit)
                done.append(unit)
        for worker in list(held):  # Workers past the end of the epoch return nothing.
            held.pop(worker)
            ledger.past_end(worker)
    assert sorted(done) == list(range(2 * n_units))
