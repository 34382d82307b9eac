"""Schedules that depend on evaluations, such as ``thincdialog.Plateau.v1``.

In addition to the rate of each step, such a schedule has ``see(is_best)``, ``value`` (the rate of
the next step), ``state()`` (JSON values) and ``restore(state)``.
"""

from typing import Any, Dict, Mapping


def scored_schedules(optimizer: Any) -> Dict[str, Any]:
    """Return the schedules of an optimizer that depend on evaluations, by the names of its
    settings."""
    schedules = getattr(optimizer, "schedules", {})
    return {name: schedule for name, schedule in schedules.items() if hasattr(schedule, "see")}


def report_to_schedules(optimizer: Any, is_best: bool) -> None:
    """Report an evaluation to the schedules, which changes the rate from the next step on.

    is_best (bool): Whether the evaluation was better than all earlier ones.
    """
    for name, schedule in scored_schedules(optimizer).items():
        schedule.see(is_best)
        setattr(optimizer, name, schedule.value)


def schedule_states(optimizer: Any) -> Dict[str, Any]:
    """Return the effect of evaluations on the schedules, as JSON values."""
    return {name: schedule.state() for name, schedule in scored_schedules(optimizer).items()}


def restore_schedules(optimizer: Any, states: Mapping[str, Any]) -> None:
    """Restore the schedules from ``schedule_states``; steps are counted elsewhere."""
    for name, schedule in scored_schedules(optimizer).items():
        if name in states:
            schedule.restore(states[name])
            setattr(optimizer, name, schedule.value)
