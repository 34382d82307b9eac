"""Print a table on stdout, and a progress bar on stderr if that is a terminal."""

import os
import shutil
import time
from typing import Any, Dict, List, Mapping, Optional, TextIO, Tuple

from tqdm import tqdm

from ..metrics.usual import is_about_reading, is_added
from ..registry import registry
from .logger import Finalize, LoggedRun, LogStep, Setup

# Number of scores to show unless the config names them, minimum width of a column in characters,
# and seconds between two updates of the bar.
MAX_SCORES = 4
MIN_WIDTH = 7
REFRESH_SECONDS = 0.1
# The bar takes the remaining width, so that a narrow terminal shows all numbers.
BAR_FORMAT = "{percentage:3.0f}% |{bar}| step {n:.0f}/{total_fmt}{postfix}, {remaining} left"
ENDLESS_FORMAT = "step {n:.0f}{postfix}, {elapsed}"
BOLD, PLAIN = "\x1b[1m", "\x1b[0m"


@registry.loggers("thincdialog.Console.v1")
def Console(scores: Optional[List[str]] = None, progress_bar: bool = True) -> Setup:
    """Print a table with a row for each evaluation, and a progress bar between the rows.

    The loss is the mean over the training examples since the row above. So is padding, the
    fraction of the computation that is spent on padding, shown for models that pad. The best
    row so far is marked with a star. Colour and the bar are shown only on a terminal; with
    NO_COLOR set there is no colour. The bar shows the mean loss since the last row,
    examples/s, and the time left if only steps and epochs limit the run.

    scores (Optional[List[str]]): Names of the metrics to show. If null, these are the optimised
        metric (with several tasks, that of each task), the metrics that the config adds to the
        usual ones, and others up to four in all, if there is room.
    progress_bar (bool): Whether to show the bar.
    """

    def setup(run: LoggedRun, stdout: TextIO, stderr: TextIO) -> Tuple[LogStep, Finalize]:
        with_bar = progress_bar and stderr.isatty()
        console = ConsoleLogger(run, stdout, stderr if with_bar else None, scores)
        return console.log_step, console.finalize

    return setup


class ConsoleLogger:
    """Implement ``Console``. Steps before a resume count as done, but not for the time left.

    run (LoggedRun): The run.
    stdout (TextIO): Stream for the table.
    bar_stream (Optional[TextIO]): Stream for the progress bar; None for no bar.
    scores (Optional[List[str]]): Metrics to show.
    """

    def __init__(
        self,
        run: LoggedRun,
        stdout: TextIO,
        bar_stream: Optional[TextIO],
        scores: Optional[List[str]] = None,
    ):
        self.run, self.stdout = run, stdout
        self.scores, self.are_given = list(scores or ()), scores is not None
        self.widths: List[int] = []
        self.has_padding = False
        self.has_colour = stdout.isatty() and not os.environ.get("NO_COLOR")
        self.bar: Optional[tqdm] = None
        if bar_stream is not None:
            self.bar = tqdm(
                total=run.total_steps,
                initial=run.first_step,
                file=bar_stream,
                leave=False,
                dynamic_ncols=True,
                bar_format=BAR_FORMAT if run.total_steps else ENDLESS_FORMAT,
            )
        self._updated_at = 0.0
        # A resumed run counts the examples before the resume, too, which are known only later.
        self._rate_examples: Optional[int] = None if run.first_step else 0
        self._rate_since = time.perf_counter()

    def _start_rate(self, examples: int) -> None:
        self._rate_examples = examples
        self._rate_since = time.perf_counter()

    def log_step(self, info: Optional[Dict[str, Any]]) -> None:
        """Move the bar, at most ten times a second; after an evaluation, write a row."""
        if info is not None and info.get("is_evaluation", True):
            self._row(info)
        elif self.bar is not None:
            self._update_bar()

    def _update_bar(self) -> None:
        now = time.perf_counter()
        if now - self._updated_at < REFRESH_SECONDS:
            return
        progress = self.run.progress
        assert self.bar is not None and progress is not None
        self._updated_at = now
        since = self._rate_examples
        if since is None:
            self._start_rate(since := progress.examples)
        rate = (progress.examples - since) / max(now - self._rate_since, 1e-9)
        loss, unit = progress.loss
        shown = f"loss {loss:.4f}/{unit}, {rate:,.0f} examples/s"
        shown += f", {progress.workers}" * bool(progress.workers)
        self.bar.set_postfix_str(shown, refresh=False)
        self._move_bar(progress.step, progress.total_steps)

    def _move_bar(self, step: int, total_steps: Optional[float]) -> None:
        assert self.bar is not None
        self.bar.n = step
        total_steps = self.bar.total if total_steps is None else total_steps
        if total_steps is not None:
            self.bar.total = max(round(total_steps), step)
            self.bar.bar_format = BAR_FORMAT
        self.bar.refresh()

    def _row(self, info: Dict[str, Any]) -> None:
        """Write a row, and above the first row the names of the columns."""
        if self.bar is not None:
            self.bar.clear()
        if not self.widths:
            # Before the first step, only the evaluation has measured padding.
            padding = (known.get("padding_fraction") for known in (info, info["scores"]))
            self.has_padding = any(padding)
            if not self.are_given:
                self._choose_scores(info)
            names = list(self._cells(info))
            self.widths = [max(len(name), MIN_WIDTH) for name in names]
            self._write(names)
            self._write(["-" * width for width in self.widths])
        self._write(list(self._cells(info).values()), bold=bool(info.get("is_best")))
        if self.bar is not None:
            self._move_bar(info["step"], info.get("total_steps"))
        self._start_rate(info["examples"])

    def _choose_scores(self, info: Dict[str, Any]) -> None:
        """Choose the scores to show, as many as the terminal has room for, but at least one."""
        others = [name for name in info["scores"] if _is_score(name)]
        if "macro_f1" in others:  # For classes, the F1 of whole classes replaces the F1 of words.
            others = [name for name in ("macro_f1", *others) if _metric(name) != "f1"]
        first = info.get("score_name")
        alike = [name for name in others if _metric(name) == _metric(first or "")]
        added = [name for name in others if "/" not in name and is_added(name)]
        names = dict.fromkeys([first, *alike, *added, *others])
        shown = [name for name in names if name in info["scores"]]
        self.scores = shown[: max(MAX_SCORES, len({first, *added} & set(shown)))]
        if self.stdout.isatty():
            room = shutil.get_terminal_size().columns
            while len(self.scores) > 1 and self._width(info) > room:
                self.scores.pop()

    def _width(self, info: Dict[str, Any]) -> int:
        return sum(max(len(name), MIN_WIDTH) + 2 for name in self._cells(info)) - 2

    def _cells(self, info: Dict[str, Any]) -> Dict[str, str]:
        """Return column name (with unit) to cell."""
        cells = {
            "epoch": f"{info['epoch']:.2f}",
            "step": f"{info['step']:,}",
            "examples": f"{info['examples']:,}",
            "loss/example": _loss(info),
        }
        for name in self.scores:
            cells[name] = _number(info["scores"].get(name), ".4f")
        if self.has_padding:
            cells["padding"] = _number(info.get("padding_fraction"), ".1%")
        cells["examples/s"] = _number(info["examples_per_second"], ",.0f")
        cells["time"] = duration(info["seconds"])
        cells["best"] = "*" if info.get("is_best") else ""
        return cells

    def _write(self, cells: List[str], bold: bool = False) -> None:
        line = "  ".join(cell.rjust(width) for cell, width in zip(cells, self.widths)).rstrip()
        if bold and self.has_colour:
            line = f"{BOLD}{line}{PLAIN}"
        self.stdout.write(line + "\n")
        self.stdout.flush()

    def finalize(self) -> None:
        """Remove the bar."""
        if self.bar is not None:
            self.bar.close()


def duration(seconds: float) -> str:
    """Format seconds as h:mm:ss, or m:ss below one hour."""
    minutes, rest = divmod(int(seconds), 60)
    hours, minutes = divmod(minutes, 60)
    return f"{hours}:{minutes:02d}:{rest:02d}" if hours else f"{minutes}:{rest:02d}"


def _loss(info: Mapping[str, Any]) -> str:
    # The cell names the unit, because the unit is known only after the first step, and the header
    # is printed before that.
    per_token = info.get("loss_per_token")
    if per_token is not None:
        return f"{per_token:.4f}/token"
    return _number(info["loss_per_example"], ".4f")


def _number(value: Optional[float], form: str) -> str:
    return "-" if value is None else format(value, form)


def _metric(name: str) -> str:
    """Return a metric's name without that of its task."""
    return name.rpartition("/")[2]


def _is_score(name: str) -> bool:
    # Truncation and padding are not scores of the agent; f1 represents precision and recall.
    return not is_about_reading(name) and _metric(name) not in ("precision", "recall")
