"""The logger contract, which is spaCy's: ``setup`` gives ``log_step`` and ``finalize``.

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
``LoggedRun``) in the place of spaCy's ``nlp``, and with the two streams. ``log_step(info)`` is
called with each row: at step 0, after a step with an evaluation, and every ``[training]
log_every_steps``; ``log_step(None)`` after any other step: thousands of times, so None must be
cheap. ``finalize()`` is called once at the end, also when training fails: then ``run.error``
says how.

What ``setup`` raises ends the run before it has begun. What the others raise does not:
training goes on, and one line on stderr tells (``chain.py``).

``info``, a row, must not be changed. Keys may be missing only where None
is allowed (``scores`` are spaCy's ``other_scores``, ``loss_per_example`` its ``losses``):

step (int): Training steps done.
epoch (float): Epochs done.
examples (int): Training examples seen since the start of the run.
loss_per_example (Optional[float]): Mean training loss since the last row (nats);
    None before the first step, and for an agent that counts tokens: its rows have
    ``loss_per_token``.
score_name (str): Name of the metric that is optimised.
score (Optional[float]): Its value; None without dev data, or evaluation.
scores (Dict[str, float]): All metrics of the evaluation, by name.
is_best (bool): Whether this is the best score so far.
is_evaluation (bool): Whether there was an evaluation; else the row tells of training alone:
    of the steps since the last row of either kind. That of an evaluation tells of those since
    the last evaluation.
learn_rate (Optional[float]): Of the last step.
gradient_norm (Optional[float]): Of the last step, before clipping.
examples_per_second (Optional[float]): Training examples since the last row, by
    the seconds spent training (not evaluating) on them.
tokens_per_second (Optional[float]): The same of tokens.
seconds (float): Since the start of the run.
total_steps (Optional[float]): Steps of the whole run as far as is known now.

More keys may be there, such as padding_fraction, left_out (file to how many of its conversations or
examples were left out so far), or gpu_bytes (memory that a GPU's pool holds, the
most that was needed at once); a logger that writes all writes them, too.
"""

from dataclasses import dataclass
from typing import Any, Callable, Dict, Mapping, NamedTuple, Optional, TextIO, Tuple

from ..registry import registry


class Progress(NamedTuple):
    """How far training is, after a step; as in a row. ``loss`` is the mean since the last row,
    and per what: "example" or "token"; ``workers`` how several of them get on."""

    step: int
    epoch: float
    examples: int
    loss: Tuple[float, str]
    total_steps: Optional[float] = None
    workers: str = ""


@dataclass(eq=False)
class LoggedRun:
    """The run that a logger tells of. ``progress`` and ``error`` (Optional[BaseException]: what
    ended it, if anything did) change as training goes on, the others do not.

    config (Mapping[str, Any]): The whole config as nested sections, variables filled in.
    output (Optional[str]): Folder of the run; None if it saves nothing.
    first_step (int): Training steps done before, in a run that is resumed; 0 in a new one.
        Rows of later steps that were logged before will be logged once more.
    total_steps (Optional[float]): Steps of the whole run; None if it is not known yet.
    place (Optional[str]): Where the run is written at first, if an earlier one is in ``output``
        still: what is written there comes into ``output`` with it.
    progress_now (Callable[[], Optional[Progress]]): Gives ``progress``.
    """

    config: Mapping[str, Any]
    output: Optional[str] = None
    first_step: int = 0
    total_steps: Optional[float] = None
    error: Optional[BaseException] = None
    place: Optional[str] = None
    progress_now: Callable[[], Optional[Progress]] = lambda: None

    @property
    def progress(self) -> Optional[Progress]:
        """How far it is; None before the first step. Found when it is asked for: there are many
        more steps than anybody looks at."""
        return self.progress_now()


LogStep = Callable[[Optional[Dict[str, Any]]], None]
Finalize = Callable[[], None]
# (run, stdout, stderr) -> (log_step, finalize)
Setup = Callable[[LoggedRun, TextIO, TextIO], Tuple[LogStep, Finalize]]
# (what gives the progress, row or None) -> None
Log = Callable[[Callable[[], Progress], Optional[Dict[str, Any]]], None]

registry.loggers.makes(Setup)
