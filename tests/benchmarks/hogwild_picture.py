"""Draws how training scales with workers."""

from pathlib import Path
from typing import Dict


def draw(path: Path, lines: Dict[str, Dict[int, float]], ceiling: Dict[int, float]) -> None:
    """Save a picture of speed-ups over one worker.

    path (Path): Of the PNG file; its folder is made.
    lines (Dict[str, Dict[int, float]]): Speed-up by number of workers, by name.
    ceiling (Dict[int, float]): That of pure computing.
    """
    import matplotlib

    matplotlib.use("Agg")
    from matplotlib import pyplot

    figure, axis = pyplot.subplots(figsize=(9, 6.5), layout="constrained")
    counts = sorted(ceiling)
    axis.fill_between(counts, [ceiling[n] for n in counts], color="#f3d4cd", lw=0)
    axis.annotate("pure computing", (counts[-1], ceiling[counts[-1]]), ha="right", va="bottom")
    for name, speedups in lines.items():
        style = "--" if "process" in name else ":" if "numpy" in name else "-"
        axis.plot(counts, [speedups[n] for n in counts], style, marker="o", label=name)
    axis.set_xscale("log", base=2)
    axis.set_yscale("log", base=2)
    for ticks in (axis.xaxis, axis.yaxis):
        ticks.set_major_formatter("{x:g}")
    axis.set_xticks(counts)
    axis.set_xlabel("workers")
    axis.set_ylabel("examples a second, over one worker")
    axis.spines[["top", "right"]].set_visible(False)
    axis.legend(frameon=False)
    path.parent.mkdir(parents=True, exist_ok=True)
    figure.savefig(path, dpi=110)
    pyplot.close(figure)
