"""Plateau lowers the rate after evaluations without a new best, again and again."""

import json

import pytest
from thinc.api import Adam

from thincdialog.optimizers.scored_schedules import (
    report_to_schedules,
    restore_schedules,
    schedule_states,
)
from thincdialog.registry import registry

registry.ensure_populated()


def make(*arguments, **options):
    return registry.schedules.get("thincdialog.Plateau.v1")(*arguments, **options)


def test_plateau_lowers_the_rate_of_the_next_step():
    optimizer, rates = Adam(make(0.8, factor=0.5, patience=2)), []
    for is_best in (True, False, True, False, False, False, False, True, False):
        report_to_schedules(optimizer, is_best)
        rates.append(optimizer.learn_rate)
        optimizer.step_schedules()
    assert rates == [0.8, 0.8, 0.8, 0.8, 0.4, 0.4, 0.2, 0.2, 0.2]


def test_plateau_combines_with_another_schedule_and_its_end():
    optimizer, rates = Adam(make(iter([1.0, 2.0, 4.0]), patience=1, min_rate=1.5)), []
    for step in range(6):
        if step in (2, 4):
            report_to_schedules(optimizer, False)
        rates.append(optimizer.learn_rate)
        optimizer.step_schedules()
    # Lower rates are not raised, and lowered rates stay above the minimum.
    assert rates == [1.0, 2.0, 2.0, 2.0, 1.5, 1.5]


def test_plateau_has_a_state_from_which_another_continues():
    one, two = (Adam(make(1.0, patience=2)) for _ in range(2))
    for is_best in (False, False, False):
        report_to_schedules(one, is_best)
    restore_schedules(two, json.loads(json.dumps(schedule_states(one))))
    assert two.learn_rate == one.learn_rate == 0.5
    for optimizer in (one, two):
        report_to_schedules(optimizer, False)
    assert two.learn_rate == one.learn_rate == 0.25


@pytest.mark.parametrize("options", [{"factor": 1.0}, {"patience": 0}, {"min_rate": -1.0}])
def test_plateau_out_of_range_is_refused(options):
    with pytest.raises(ValueError, match="must be"):
        make(0.1, **options)
