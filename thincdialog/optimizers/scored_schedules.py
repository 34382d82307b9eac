"""Schedules that go by what evaluations find, such as ``thincdialog.Plateau.v1``.

Besides the rate of each step, such a schedule has ``see(is_best)``, ``value`` (the rate of the
step to come), ``state()`` (JSON values) and ``restore(state)``.
"""

from typing import Any, Dict, Mapping


def scored_schedules(optimizer: Any) -> Dict[str, Any]:
    """Those of an optimizer, by the names of its settings."""
    schedules = getattr(optimizer, "schedules", {})
    return {name: schedule for name, schedule in schedules.items() if hasattr(schedule, "see")}


def tell_schedules(optimizer: Any, is_best: bool) -> None:
    """Take in an evaluation; it changes the rate from the next step on.

    is_best (bool): Whether it was better than all before.
    """
    for name, schedule in scored_schedules(optimizer).items():
        schedule.see(is_best)
        setattr(optimizer, name, schedule.value)


def schedule_states(optimizer: Any) -> Dict[str, Any]:
    """What evaluations have done to schedules, as JSON values."""
    return {name: schedule.state() for name, schedule in scored_schedules(optimizer).items()}


def restore_schedules(optimizer: Any, states: Mapping[str, Any]) -> None:
    """Take back what ``schedule_states`` gave; steps are counted elsewhere."""
    for name, schedule in scored_schedules(optimizer).items():
        if name in states:
            schedule.restore(states[name])
            setattr(optimizer, name, schedule.value)
