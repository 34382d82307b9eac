"""The interface of loggers, which is spaCy's: ``setup`` returns ``log_step`` and ``finalize``.

    @registry.loggers("my_logger.v1")
    def my_logger(path: str):
        def setup(run, stdout, stderr):
            file = open(path, "w")

            def log_step(info):
                if info is not None:
                    file.write(f"{info['step']} {info['score']}\\n")

            def finalize():
                file.close()

            return log_step, finalize

        return setup

A registered logger returns ``setup``. It is called once, before training, with ``run`` (see
``LoggedRun``) instead of spaCy's ``nlp``, and with the two streams. ``log_step(info)`` is
called with each row: at step 0, after a step with an evaluation, and every ``[training]
log_every_steps``. ``log_step(None)`` is called after any other step, thousands of times, so None
must be cheap. ``finalize()`` is called once at the end, also when training fails: then
``run.error`` holds the error.

An error in ``setup`` ends the run before training begins. An error in ``log_step`` or
``finalize`` does not: training continues, and one line is printed on stderr (``chain.py``).

``info`` is a row and must not be changed. Keys may be missing only where None
is allowed (``scores`` are spaCy's ``other_scores``, ``loss_per_example`` its ``losses``):

step (int): Training steps done.
epoch (float): Epochs done.
examples (int): Training examples seen since the start of the run.
loss_per_example (Optional[float]): Mean training loss since the last row (nats);
    None before the first step, and for an agent that counts tokens: its rows have
    ``loss_per_token``.
score_name (str): Name of the metric that is optimised.
score (Optional[float]): Value of that metric; None without dev data, or evaluation.
scores (Dict[str, float]): All metrics of the evaluation, by name.
is_best (bool): Whether this is the best score so far.
is_evaluation (bool): Whether there was an evaluation. The row of an evaluation covers the steps
    since the last evaluation; any other row covers only training, since the last row of either
    kind.
learn_rate (Optional[float]): Learning rate of the last step.
gradient_norm (Optional[float]): Gradient norm of the last step, before clipping.
examples_per_second (Optional[float]): Training examples since the last row, divided by
    the seconds spent training (not evaluating) on them.
tokens_per_second (Optional[float]): Tokens since the last row, divided by the same seconds.
seconds (float): Seconds since the start of the run.
total_steps (Optional[float]): Steps of the whole run, as far as is known now.

A row may have more keys, such as padding_fraction, left_out (file to the number of its
conversations or examples that were left out so far), or gpu_bytes (memory that a GPU's pool holds,
the most that was needed at once). A logger that writes all keys writes these too.
"""

from dataclasses import dataclass
from typing import Any, Callable, Dict, Mapping, NamedTuple, Optional, TextIO, Tuple

from ..registry import registry


class Progress(NamedTuple):
    """Hold the progress of training after a step. Fields are as in a row. ``loss`` is the mean
    since the last row, with its unit, "example" or "token"; ``workers`` describes several
    workers."""

    step: int
    epoch: float
    examples: int
    loss: Tuple[float, str]
    total_steps: Optional[float] = None
    workers: str = ""


@dataclass(eq=False)
class LoggedRun:
    """Describe the run to its loggers. Only ``progress`` and ``error`` (Optional[BaseException]:
    the error that ended the run, if any) change during training.

    config (Mapping[str, Any]): The complete config as nested sections, with variables filled in.
    output (Optional[str]): Folder of the run; None if it saves nothing.
    first_step (int): Number of training steps before a resume; 0 in a new run. Rows of later steps
        that were logged before the resume are logged again.
    total_steps (Optional[float]): Steps of the whole run; None if not known yet.
    progress_now (Callable[[], Optional[Progress]]): Returns ``progress``.
    """

    config: Mapping[str, Any]
    output: Optional[str] = None
    first_step: int = 0
    total_steps: Optional[float] = None
    error: Optional[BaseException] = None
    progress_now: Callable[[], Optional[Progress]] = lambda: None

    @property
    def progress(self) -> Optional[Progress]:
        """Progress of training; None before the first step. It is computed only on access,
        because most steps are never shown."""
        return self.progress_now()


LogStep = Callable[[Optional[Dict[str, Any]]], None]
Finalize = Callable[[], None]
# (run, stdout, stderr) -> (log_step, finalize)
Setup = Callable[[LoggedRun, TextIO, TextIO], Tuple[LogStep, Finalize]]
# (function that returns the progress, row or None) -> None
Log = Callable[[Callable[[], Progress], Optional[Dict[str, Any]]], None]

registry.loggers.makes(Setup)
