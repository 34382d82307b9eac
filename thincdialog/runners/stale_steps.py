"""Settings for Adam with stale gradients, which were computed with older weights."""

from typing import Dict, Mapping

# The learning rate of an Adam that cannot look ahead is divided by the number of workers to this
# power. It is a compromise between 0.5, because of the noise, and 1, because of the delay.
_RATE_POWER = 0.75
# Number of steps per worker by which a gradient looks ahead.
_AHEAD = 1.25


def stale_settings(settings: Mapping[str, float], n_workers: int) -> Dict[str, float]:
    """Return optimizer settings for n workers at once. When a worker applies its gradient, the
    others have moved the weights by about n - 1 steps since it computed the gradient.

    With a delay of d steps, Adam is stable for learning rates up to about 1 / d, divided by the
    curvature, for any momentum; without a delay, and with a momentum of 0.9, up to 38. So a
    gradient should be computed at the weights as they will be: s = 1.25 n steps of the momentum
    ahead. If the stored weights are the ones ahead, as with Nesterov's momentum, this amounts to
    Adam with a part of the newest gradient in its steps (``LazyAdam.nu``), and costs nothing:

        learn_rate / n ** 0.5
        1 - beta1' = (1 - beta1) / n
        nu = 1 - s (1 - beta1') / beta1'

    s is close to the value that allows the highest rates on a quadratic function with this delay.
    The momentum and the rate are a compromise between measurements with 2 and 4 workers at once
    (tests/benchmarks/bench_hogwild_quality.py).

    Thinc's own Adam cannot look ahead; nor can LazyAdam if the momentum is so small (below 0.2 to
    0.43) that nu would not be positive. These get learn_rate / n ** 0.75, and less momentum,
    because a delay acts like additional momentum: 1 - beta1' = n (1 - beta1), but beta1' is at
    least beta1 / n. Other optimizers are left as they are.

    settings (Mapping[str, float]): The settings for one worker, by the optimizer's names.
    n_workers (int): Number of workers that make steps at the same time, 1 or more; with 1, nothing
        changes.
    RETURNS (Dict[str, float]): All settings, with these changes.
    SOURCE: Prediction of the weights from the momentum: Guan et al. 2023,
        https://arxiv.org/abs/2312.00839. nu: Ma and Yarats 2019,
        https://arxiv.org/abs/1810.06801. Rate and momentum of Thinc's Adam: Mitliagkas et al.
        2016, https://arxiv.org/abs/1605.09774; Zhang et al. 2016,
        https://arxiv.org/abs/1511.05950
    """
    changed = dict(settings)
    # Change only Adam and its variants, which divide by a second moment.
    if n_workers == 1 or settings["b2"] <= 0:
        return changed
    b1 = settings["b1"]
    longer = 1 - (1 - b1) / n_workers
    nu = 1 - _AHEAD * n_workers * (1 - longer) / longer
    if "nu" in settings and nu > 0:
        changed["learn_rate"] /= n_workers**0.5
        changed["b1"], changed["nu"] = longer, nu
    else:
        changed["learn_rate"] /= n_workers**_RATE_POWER
        changed["b1"] = max(1 - n_workers * (1 - b1), b1 / n_workers)
    return changed


def describe_stale(settings: Mapping[str, float], n_workers: int) -> str:
    """Return a line for the user that describes the changes of ``stale_settings``; "" if there are
    none.

    settings (Mapping[str, float]): The current settings for one worker.
    n_workers (int): Number of workers that make steps at the same time, 1 or more.
    """
    changed = stale_settings({**settings, "learn_rate": 1.0}, n_workers)
    if changed["learn_rate"] == 1.0:
        return ""
    nu = changed.get("nu", 1.0)
    ahead = f", nu {nu:.3g}" if nu != 1.0 else ""
    advice = "" if "nu" in settings else ". thincdialog.LazyAdam.v1 suffers less from this"
    return (
        f"[runner] {n_workers} workers run at once: gradients are some steps old, so Adam's "
        f"learn_rate is multiplied by {changed['learn_rate']:.3g}, and its beta1 is "
        f"{changed['b1']:.3g} instead of {settings['b1']:.3g}{ahead}{advice}"
    )
