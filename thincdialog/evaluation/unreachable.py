"""Find labels that an agent can never give, because they are in no candidate list."""

from dataclasses import dataclass, field
from itertools import islice
from typing import Dict, List

from ..protocol import Agent
from ..teachers import Teacher

# If more than this fraction of labels is unreachable, the user is warned.
MOST_SHARE = 0.5
# Largest number of examples of each task that are checked.
N_CHECKED = 2000
# Number of labels that are named.
N_NAMED = 3
IN_NO_LIST = "are in no candidate list, so they can never be chosen"


@dataclass
class Unreachable:
    """Count the labels that an agent can never reply with, among the first examples of a task.

    count (int): Number of examples that have no label that the agent can give.
    n_labelled (int): Number of examples that were checked, because they have a label and a known
        list of reachable replies.
    share (float): ``count`` as a fraction of ``n_labelled``, 0.0 to 1.0.
    ids (List[str]): A label of each of the first ``N_NAMED`` unreachable examples.
    remedy (str): Advice for the user; "" if every label is reachable.
    """

    count: int = 0
    n_labelled: int = 0
    share: float = 0.0
    ids: List[str] = field(default_factory=list)
    remedy: str = ""

    def text(self, task: str = "") -> str:
        """Describe the share for the user.

        task (str): Name of the task, if there are several.
        """
        of_task = f" of {task}" if task else ""
        return f"{100 * self.share:.1f} % of {self.n_labelled:,} labels{of_task}"


def find_unreachable(agent: Agent, teacher: Teacher) -> Dict[str, Unreachable]:
    """Count the labels that an agent can never reply with, by task.

    agent (Agent): An agent that has at least seen the training data (``survey()``).
    teacher (Teacher): Teacher of a split, for evaluation.
    """
    return {name: _of_task(agent, task) for name, task in teacher.by_task().items()}


def _of_task(agent: Agent, teacher: Teacher) -> Unreachable:
    """Check the first examples of one task."""
    found, has_own = Unreachable(), False
    for example in islice(teacher.examples(), N_CHECKED):
        labels = example.all_labels
        allowed = agent.reachable(example) if labels else None
        if allowed is None:
            continue
        found.n_labelled += 1
        if any(label in allowed for label in labels):
            continue
        found.count += 1
        found.ids += labels[:1] if len(found.ids) < N_NAMED else []
        has_own = has_own or example.get("label_candidates") is not None
    found.share = found.count / max(1, found.n_labelled)
    found.remedy = _remedy(agent, has_own) if found.count else ""
    return found


def _remedy(agent: Agent, has_own: bool) -> str:
    """Return advice that suits the agent's settings.

    has_own (bool): Whether there are examples with candidates that lack the label.
    """
    if agent.has_classes:
        return "spell them as in the training data, or train on examples of them"
    others = "let [agent] choose from fixed_candidates with the labels among them"
    if not agent.uses_candidates:
        change = "leave out eval_candidates in [agent] and set n_candidates = 100 in [evaluation]"
        return f"{change}, or {others}"
    if has_own:
        return "put each label among the label_candidates of its example"
    change = "set n_candidates = 100 in [evaluation] (or --evaluation.n_candidates 100)"
    return f"{change}, give the data label_candidates, or {others}"


def unreachable_labels(agent: Agent, teacher: Teacher) -> str:
    """Check whether an agent can give the right replies at all.

    teacher (Teacher): Teacher of a split, for evaluation; the first examples are checked.
    RETURNS (str): A warning for the user if the agent cannot give most labels; otherwise "".
    """
    of_tasks = find_unreachable(agent, teacher)
    many = {name: found for name, found in of_tasks.items() if found.share > MOST_SHARE}
    if not many:
        return ""
    shares = " and ".join(found.text(name) for name, found in many.items())
    remedy = "; ".join(dict.fromkeys(found.remedy for found in many.values()))
    if agent.has_classes:
        return f"{shares} are not classes of the model, so it can never predict them: {remedy}"
    return f"{shares} {IN_NO_LIST}: {remedy}"
