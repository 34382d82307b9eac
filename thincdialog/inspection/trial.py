"""Training steps whose results are not saved."""

import sys
from contextlib import contextmanager
from typing import Any, Generator, Iterator, Optional, TextIO, cast

from ..config import ConfigLike
from ..errors import ConfigError, Problem
from ..runners.alone import gather
from ..teachers import Teacher
from ..training.experiment import CodeLike, Experiment, Overrides
from ..training.loop import nothing_learned
from ..worlds import World


class Trial(Experiment):
    """Hold an experiment whose agent has its initial weights.

    teacher (Teacher): Teacher of the training data.
    world (World): World of ``steps``, after the first of them.
    """

    teacher: Teacher
    world: World
    agent: Any  # Debug commands also access the agent's model.

    @property
    def model(self) -> Any:
        """The agent's Thinc model.

        RAISES (ConfigError): If the agent has none.
        """
        if self.agent.model is None:
            text = f"[agent] '{self.agent.id}' has no Thinc model to inspect"
            raise ConfigError([Problem("", text, "check it with its own tools")])
        return self.agent.model

    def steps(self) -> Generator[bool, None, None]:
        """Accumulate the gradient of one step after the other, epoch after epoch, as in training.
        Before the next step, the caller must call the agent's ``update()`` or ``give_up()``.

        YIELDS (bool): Whether the step is a smaller last step of an epoch, with fewer examples than
            all other steps of the epoch.
        RAISES (DataError): If the agent was trained on no example.
        """
        agent, epoch, step = self.agent, 0, 0
        n_microbatches = self.training["accumulate_gradient"]
        with self.make_world(self.teacher, agent) as world:
            self.world = world
            while True:
                world.start_epoch(epoch, self.seed)
                fewest = 0
                while not world.epoch_done():
                    gather(agent, world, self.seed, step + 1, n_microbatches)
                    n_examples = agent.n_gathered
                    if n_examples:
                        step += 1
                        yield n_examples < fewest and world.epoch_done()
                        fewest = min(n_examples, fewest or n_examples)
                if not fewest:
                    raise nothing_learned(agent, self.teacher)
                epoch += 1


@contextmanager
def prepared(
    config: ConfigLike,
    overrides: Overrides = None,
    code: CodeLike = None,
    stderr: Optional[TextIO] = None,
) -> Iterator[Trial]:
    """Prepare a trial of a config, on the device that the config names.

    config, overrides, code: As for ``Experiment.from_config()``.
    stderr (Optional[TextIO]): Stream for progress; sys.stderr if None.
    RAISES (DialogError): If the config or the data cannot be used.
    """
    trial = cast(Trial, Trial.from_config(config, overrides, code))
    with trial.working():
        _ = trial.learner  # An agent without weights is refused.
        trial.check_data()
        stream = stderr or sys.stderr
        trial.use_examples(stream, "none")
        trial.teacher = trial.training_split(with_metrics=False)
        trial.initialize(trial.teacher, stream, "none")
        trial.use_tokens(stream, "none")
        yield trial
