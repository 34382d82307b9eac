"""What Adam needs to make steps from gradients of older weights."""

from typing import Dict, Mapping

# Between the square root of the workers (their noise) and their number (their delay).
_RATE_POWER = 0.75


def is_adam(settings: Mapping[str, float]) -> bool:
    """Whether an optimizer with these settings is Adam or a kin of it: it divides its steps
    by a second moment."""
    return settings["b2"] > 0


def stale_settings(settings: Mapping[str, float], n_workers: int) -> Dict[str, float]:
    """Settings for steps of n workers, each of which finds the weights about n - 1 steps
    further than where its gradient was taken.

    Adam's steps stay long where many gradients agree, so n workers go too far before the
    first of them can see it. And their delay acts as momentum, of 1 - 1 / n, beside Adam's own.
    So Adam gets

        learn_rate / n ** 0.75
        1 - beta1' = n (1 - beta1), but beta1' is beta1 / n or more

    a compromise of measurements with 2 and 4 workers: a ranker of real conversations would
    have longer steps, that of configs/quickstart.cfg shorter ones with no momentum
    (tests/benchmarks/bench_hogwild_quality.py). Others are left as they are: they lose little.

    settings (Mapping[str, float]): Those for one worker, by the optimizer's names of them.
    n_workers (int): At steps at the same time, 1 or more; for one, nothing changes.
    RETURNS (Dict[str, float]): All settings.
    SOURCE: the momentum, Mitliagkas et al. 2016, https://arxiv.org/abs/1605.09774, where
        momenta of asynchrony and optimizer are balanced by experiment, not by this rule; a
        rate divided by the delay, Zhang et al. 2016, https://arxiv.org/abs/1511.05950
    """
    changed = dict(settings)
    if n_workers > 1 and is_adam(settings):
        b1 = settings["b1"]
        changed["learn_rate"] /= n_workers**_RATE_POWER
        changed["b1"] = max(1 - n_workers * (1 - b1), b1 / n_workers)
    return changed


def describe_stale(settings: Mapping[str, float], n_workers: int) -> str:
    """What ``stale_settings`` changes, as a line for the user; "" if nothing.

    settings (Mapping[str, float]): Those for one worker, as they are now.
    n_workers (int): At steps at the same time, 1 or more.
    """
    changed = stale_settings({**settings, "learn_rate": 1.0}, n_workers)
    if changed["learn_rate"] == 1.0:
        return ""
    return (
        f"[hogwild] {n_workers} workers at once: Adam's learn_rate times "
        f"{changed['learn_rate']:.3g}, beta1 {changed['b1']:.3g} for {settings['b1']:.3g}: "
        "gradients are some steps old"
    )
