"""``debug profile``: show how much time each part of training takes."""

import argparse
import re
import shutil
from typing import Any, List, Sequence

from .arguments import common, trial
from .output import messages, print_json, shorten, table

EXAMPLES = [
    "debug profile quickstart.cfg",
    "debug profile ranker.cfg --paths.train train.jsonl --steps 200 --world.batcher.size 32",
]

ABOUT = """
Trains for some steps and shows how many milliseconds of a step each layer takes: in the forward
pass, in the backward pass, in both without inner layers ("self"), and in both with inner layers
("total"). The last column is the share of "self" in the step. Rows in parentheses are work outside
the layers. A layer that is used in several places is timed in all of them. Names are cut to the
width of your terminal; --json prints them in full. Writes nothing.

On a GPU, the times are those of the host, which starts the GPU's work and does not wait for it
until the end of each step."""

HEADER = ("ms/step", "calls", "forward", "backward", "self", "total", "share")
ON_GPU = """These are times of the host. The GPU computes at the same time; "(wait for the GPU)" is
the rest of the GPU's work. To time the GPU's kernels, use Nsight Systems with Thinc's
with_nvtx_range, or cupyx.profiler."""
# Minimum number of characters to keep of a name, and of the part of the model in it.
LEAST_NAME, LEAST_PART = 20, 10


ARGUMENTS = trial("steps to measure", 50)


def run(arguments: argparse.Namespace) -> None:
    """Measure, and show the time of each part."""
    from ..api import debug_profile

    found = debug_profile(arguments.config, **common(arguments, "steps"))
    if arguments.json:
        print_json({**vars(found), "overhead": found.overhead})
        return
    print(table(_rows(found.parts, shutil.get_terminal_size().columns)))
    step = f"A step of {found.examples_per_step:.0f} examples takes {found.plain_ms:.2f} ms"
    print(f"\n{step}; measured {found.step_ms:.2f} ms ({found.overhead:+.0%}).")
    if found.is_on_gpu:
        print(ON_GPU)
    if found.eval_ms_per_example is not None:
        text = f"Evaluation takes {found.eval_ms_per_example:.3f} ms per example"
        if found.eval_examples and found.eval_share is not None:
            text += f"; evaluations of {found.eval_examples:,} examples\n"
            text += f"take {found.eval_share:.0%} of a run"
        print(text + ".")
    if found.overhead > 0.2:
        messages.warn("Measuring adds much overhead here: small layers look slower than they are.")


def _rows(parts: Sequence[Any], columns: int) -> List[List[str]]:
    """Return the header and a row for each part, fitted to the terminal's width."""
    known = [part for part in parts if part.calls]
    digits = 3 if all(part.total < 10 for part in known) else 2
    numbers = [list(HEADER[1:])]
    for part in known:
        times = (part.forward, part.backward, part.own, part.total)
        cells = [f"{value:.{digits}f}" for value in times]
        numbers.append([f"{part.calls:g}", *cells, f"{part.share:.1%}"])
    taken = sum(2 + max(map(len, column)) for column in zip(*numbers))
    room = max(columns - taken, LEAST_NAME)
    names = [HEADER[0], *(fitted(part.name, room) for part in known)]
    return [[name, *cells] for name, cells in zip(names, numbers)]


def fitted(name: str, room: int) -> str:
    """Shorten a layer's name to ``room`` characters: "candida.../residual(re... 2". The part of the
    model is shortened first; the number at the end is kept.

    name (str): A name from ``node_names``.
    room (int): Number of characters, ``LEAST_NAME`` or more.
    """
    if len(name) <= room:
        return name
    part, slash, own = name.rpartition("/")
    number = "".join(re.findall(r" \d+$", own))
    own = own[: len(own) - len(number)]
    least = room - len(slash) - len(own) - len(number)
    part = shorten(part, max(least, min(LEAST_PART, len(part)))) + slash
    return part + shorten(own, room - len(part) - len(number)) + number
