"""Evaluation by several workers, with the scores that one finds."""

from typing import Any, Callable, Dict, List

from ...evaluation.evaluate_agent import evaluate_agent, evaluate_by
from ...metrics import Metric, merge_reports
from ...protocol import Learner
from ...teachers import Teacher
from ...training.experiment import Experiment


def evaluate_alone(experiment: Experiment, teacher: Teacher) -> Dict[str, float]:
    """In this process."""
    return evaluate_agent(experiment.agent, teacher, experiment.evaluation["world"])


def evaluate_together(
    experiment: Experiment, teacher: Teacher, ask: Callable[[str, Any], List[Any]]
) -> Dict[str, float]:
    """Each worker answers a share of the examples. An agent whose replies depend on the batches
    gets all of them by itself.

    ask (Callable): Given the name of the split and the weights, gives what each worker has
        reached: task to metrics.
    """
    if experiment.agent.replies_need_batch:
        return evaluate_alone(experiment, teacher)
    split = next(iter(teacher.by_task().values())).split
    # They may be averages, in the place of the weights.
    found = ask(split, experiment.learner.weights.copy())

    def measure(name: str, task: Teacher) -> Dict[str, Metric]:
        return merge_reports(*(reports[name] for reports in found))

    return evaluate_by(measure, experiment.agent, teacher)


def evaluate_share(
    experiment: Experiment,
    teacher: Teacher,
    worker: int,
    n_workers: int,
    tell: Callable[[], None],
) -> Dict[str, Dict[str, Metric]]:
    """What an agent reaches on its share of data to evaluate on, for each task.

    tell (Callable): Called after each parley.
    """
    reports: Dict[str, Dict[str, Metric]] = {}
    agent: Learner = experiment.learner
    make_world: Any = experiment.evaluation["world"]

    def measure(name: str, task: Teacher) -> Dict[str, Metric]:
        share = task.share_of(worker, n_workers)
        with make_world(share, agent) as world:
            world.start_epoch(0, 0)
            while not world.epoch_done():
                world.parley()
                tell()
            reports[name] = dict(world.report())
        return reports[name]

    evaluate_by(measure, agent, teacher)
    return reports
