"""A config's parts, ready to take steps of training that nothing is kept of."""

import sys
from contextlib import contextmanager
from pathlib import Path
from typing import Any, Dict, Iterator, Mapping, Optional, TextIO, Union

import numpy

from ..agents import ModelAgent
from ..config import CheckedConfig, ConfigLike, load_code, load_config, resolve_config
from ..errors import ConfigError, DataError, Problem
from ..ops.choice import using_ops
from ..teachers import Teacher
from ..training.gradients import gather_gradient
from ..training.packages import training_ops
from ..training.reading_bar import reading_bar
from ..training.task import split_of, tasks_of


class Trial:
    """The parts of a config, with the agent's weights as training begins with them.

    checked (CheckedConfig): A config whose agent has weights.
    stderr (TextIO): Where to show that texts are being read.
    RAISES (DialogError): If config or data cannot be used.
    """

    def __init__(self, checked: CheckedConfig, stderr: TextIO):
        self.checked = checked
        self.parts: Dict[str, Any] = resolve_config(checked)
        self.seed: int = self.parts["system"]["seed"]
        self.training: Dict[str, Any] = self.parts["training"]
        self.optimizer: Any = self.training["optimizer"]
        agent = self.parts["agent"]
        if not isinstance(agent, ModelAgent):
            where = checked.where("agent")
            text = f"[agent] '{agent.id}' has no weights to train"
            hint = "choose an agent with a model, such as thincdialog.Ranker.v1"
            raise ConfigError([Problem(where, text, hint)], checked.name)
        self.agent = agent
        tasks_of(checked, self.parts, "train")
        for task in self.parts["tasks"].values():
            task.check_sources()
        self.teacher: Teacher = split_of(checked, self.parts, "train", training=True)
        with reading_bar(stderr) as progress:
            agent.initialize(
                self.teacher,
                tokenizer=self.parts["tokenizer"],
                seed=self.seed,
                progress=progress,
            )

    def steps(self) -> Iterator[int]:
        """Gather the gradient of one step after the other, epoch after epoch, just as
        training does. Whoever asks for the next one has applied it (``update``); the
        metrics of the agent are those of the step.

        YIELDS (int): How many examples the step learns from.
        RAISES (DataError): If no example has a label.
        """
        agent, seed = self.agent, self.seed
        n_microbatches = self.training["accumulate_gradient"]
        epoch = step = 0
        with self.parts["world"](self.teacher, agent) as world:
            while True:
                world.start_epoch(epoch, seed)
                step_before = step
                while not world.epoch_done():
                    agent.reset_metrics()
                    examples = gather_gradient(agent, world, seed, step + 1, n_microbatches)
                    if examples:
                        step += 1
                        yield examples
                if step == step_before:
                    raise DataError(self.teacher.data_name, "no training example has a label")
                epoch += 1


@contextmanager
def prepared(
    config: Union[ConfigLike, CheckedConfig],
    overrides: Optional[Mapping[str, Any]] = None,
    code: Union[str, Path, None] = None,
    stderr: Optional[TextIO] = None,
) -> Iterator[Trial]:
    """A trial of a config, on the device that the config names.

    config (ConfigLike): Path of a config, its text, a Config, or a dict of its sections.
    overrides (Optional[Mapping[str, Any]]): "section.key" to value.
    code (Union[str, Path, None]): Python file to import first.
    stderr (Optional[TextIO]): Where to show progress; sys.stderr if None.
    RAISES (DialogError): If config or data cannot be used.
    """
    load_code(code)
    checked = load_config(config, overrides or {})
    ops = training_ops(checked)
    # Overflow ends in an error that names the examples, as in training.
    with using_ops(ops), numpy.errstate(over="ignore", invalid="ignore", divide="ignore"):
        try:
            yield Trial(checked, stderr or sys.stderr)
        except ConfigError as error:  # Found with the data, by parts that know no file.
            raise ConfigError(error.problems, checked.name) from error
