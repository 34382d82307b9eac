"""The logger contract: what the training loop tells a logger, and when.

A registered logger returns a ``setup`` function (see ``Setup``). The loop calls
``setup(stdout, stderr, total_steps)`` once and gets a ``Logger``; then ``start`` once,
``step`` after every training step, ``row`` after every evaluation (the one at step 0
included), and ``finish`` once at the end, also when training fails: then after ``failed``.

    setup = config["logger"]
    logger = setup(sys.stdout, sys.stderr, total_steps)
    logger.start(Start(config, output="output/ranker"))
    try:
        logger.step(Progress(step=1, epoch=0.1, examples=64, loss_per_example=2.3))
        logger.row(info)
    except BaseException as error:
        logger.failed(error)
        raise
    finally:
        logger.finish()

What ``setup`` and ``start`` raise ends the run before it has begun. What the others raise
does not: training goes on, and one line on stderr tells (``guarded.py``).

``info``, the row of an evaluation; keys may be missing only where None is allowed:

step (int): Training steps done.
epoch (float): Epochs done.
examples (int): Training examples seen since the start of the run.
loss_per_example (Optional[float]): Mean training loss since the last row (nats);
    None before the first step.
score_name (str): Name of the metric that is optimised.
score (Optional[float]): Its value; None without dev data.
scores (Dict[str, float]): All metrics of the evaluation, by name.
is_best (bool): Whether this is the best score so far.
learn_rate (Optional[float]): Of the last step.
gradient_norm (Optional[float]): Of the last step, before clipping.
examples_per_second (Optional[float]): Training examples since the last row, by
    the seconds spent training (not evaluating) on them.
tokens_per_second (Optional[float]): The same of tokens.
seconds (float): Since the start of the run.
total_steps (Optional[float]): Steps of the whole run as far as is known now.

More keys may be there (padding_fraction, for instance); a logger that writes all
writes them, too.
"""

from typing import Any, Callable, Dict, Mapping, NamedTuple, Optional, TextIO


class Progress(NamedTuple):
    """How far training is, after a step. Made anew at each step, so it is small.

    step (int): Training steps done.
    epoch (float): Epochs done.
    examples (int): Training examples seen since the start of the run.
    loss_per_example (Optional[float]): Mean training loss since the last row
        (nats); None if it was not read from the device.
    total_steps (Optional[float]): Steps of the whole run as far as is known now.
    """

    step: int
    epoch: float
    examples: int
    loss_per_example: Optional[float]
    total_steps: Optional[float] = None


class Start(NamedTuple):
    """The run that begins.

    config (Mapping[str, Any]): The whole config as nested sections, variables filled in.
    output (Optional[str]): Folder of the run; None if it saves nothing.
    step (int): Training steps done before, in a run that is resumed; 0 in a new one.
        Rows of later steps that were logged before will be logged once more.
    """

    config: Mapping[str, Any]
    output: Optional[str] = None
    step: int = 0


class Logger:
    """Takes note of a training run. All methods may be left as they are."""

    def start(self, start: Start) -> None:
        """The run begins, or goes on. Called once, before all others."""

    def step(self, progress: Progress) -> None:
        """A training step is done. Called thousands of times: must be cheap."""

    def row(self, info: Dict[str, Any]) -> None:
        """An evaluation is done; ``info`` is described above and must not be changed."""

    def failed(self, error: BaseException) -> None:
        """Training ends by an error or is interrupted; ``finish`` comes next."""

    def finish(self) -> None:
        """The run ends, well or badly. Called once."""


# (stdout, stderr, total_steps) -> Logger; total_steps is None if it is not known yet.
Setup = Callable[[TextIO, TextIO, Optional[float]], Logger]
