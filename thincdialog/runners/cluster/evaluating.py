"""Evaluation by several workers, with the same scores as by a single process."""

from typing import Any, Callable, Dict, List, Optional, Tuple

from ...evaluation.evaluate_agent import acts_of, evaluate_by
from ...evaluation.predictions import Recorder
from ...metrics import Metric, merge_reports
from ...teachers import Teacher
from ...training.experiment import Experiment

# Result of a worker: the metrics of each task, and its recorder with the replies.
Share = Tuple[Dict[str, Dict[str, Metric]], Optional[Recorder]]


def evaluate_together(
    experiment: Experiment,
    teacher: Teacher,
    recorder: Optional[Recorder],
    found: List[Share],
) -> Dict[str, float]:
    """Merge the results of workers, each of which evaluated a share of the examples.

    experiment (Experiment): The run's experiment.
    teacher (Teacher): Teacher of the whole split.
    recorder (Optional[Recorder]): Records every reply.
    found (List[Share]): The workers' results.
    RETURNS (Dict[str, float]): Metric name to value.
    """
    for _, recorded in found:
        if recorder is not None and recorded is not None:
            recorder.join(recorded)

    def measure(name: str, task: Teacher) -> Dict[str, Metric]:
        report = merge_reports(*(reports[name] for reports, _ in found))
        if recorder is not None:
            recorder.arrange(name, (str(each["id"]) for each in task.examples()))
        return report

    return evaluate_by(measure, experiment.agent, teacher)


def evaluate_share(
    experiment: Experiment,
    teacher: Teacher,
    worker: int,
    n_workers: int,
    recorder: Optional[Recorder],
    tell: Callable[[], None],
) -> Share:
    """Evaluate an agent on a worker's share of each task.

    experiment (Experiment): The worker's experiment.
    teacher (Teacher): Teacher of the whole split.
    worker (int): Number of the share, from 0.
    n_workers (int): Number of shares.
    recorder (Optional[Recorder]): Records every reply.
    tell (Callable): Function that is called after each parley.
    RETURNS (Share): The metrics, and the recorder.
    """
    reports: Dict[str, Dict[str, Metric]] = {}
    agent, make_world = experiment.agent, experiment.evaluation["world"]

    def acts(world: Any) -> Any:
        for act in acts_of(world):
            tell()
            yield act

    def measure(name: str, task: Teacher) -> Dict[str, Metric]:
        share = task.share_of(worker, n_workers)
        with make_world(share, agent) as world:
            world.start_epoch(0, 0)
            if recorder is None:
                for _ in acts(world):
                    pass
            else:
                recorder.record(name, acts(world))
            reports[name] = dict(world.report())
        return reports[name]

    evaluate_by(measure, agent, teacher)
    return reports, recorder
