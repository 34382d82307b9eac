"""Labels that an agent can never give, as they are among nobody's candidates."""

from itertools import islice
from typing import Dict

from ..protocol import Agent
from ..teachers import Teacher

# More than this share of labels is worth a word; so many examples of each task are looked at.
MOST_SHARE = 0.5
N_LOOKED_AT = 2000
REMEDY = (
    "set n_candidates = 100 in [evaluation] (or --evaluation.n_candidates 100), or give the data "
    "or [agent] candidates with the labels among them"
)


def unreachable_labels(agent: Agent, teacher: Teacher) -> str:
    """See whether an agent can give the right replies at all.

    teacher (Teacher): Of a split, to evaluate on; its first examples are looked at.
    RETURNS (str): A line for the user, if it cannot give most of them; else "".
    """
    choices = None if agent.choices is None else frozenset(agent.choices)
    found: Dict[str, str] = {}
    for name, task in teacher.by_task().items():
        n_labelled = n_outside = 0
        for example in islice(task.examples(), N_LOOKED_AT):
            labels = example.all_labels
            own = None if agent.has_classes else example.get("label_candidates")
            allowed = own or choices
            if labels and allowed is not None:
                n_labelled += 1
                n_outside += not any(label in allowed for label in labels)
        if n_outside > MOST_SHARE * n_labelled:
            of_task = f" of {name}" if name else ""
            found[name] = f"{100 * n_outside / n_labelled:.1f} % of {n_labelled:,} labels{of_task}"
    if not found:
        return ""
    shares = " and ".join(found.values())
    if agent.has_classes:
        remedy = "spell them as in the training data, or train on examples of them"
        return f"{shares} are no class of the model, which can never find them: {remedy}"
    return f"{shares} are among nobody's candidates and can never be given: {REMEDY}"
