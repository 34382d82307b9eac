"""Examples of a task, and a model's replies to them, for people to look at."""

from typing import Any, Dict, Iterator, List, Tuple

from ..config import ConfigLike
from ..evaluation.evaluate_agent import sample_exchanges
from ..evaluation.results import Exchange
from ..formats.tolerance import tolerating
from ..messages import Message
from ..training.experiment import CodeLike, Experiment, Overrides, PathLike


def display_data(
    config: ConfigLike,
    *,
    split: str = "train",
    n_examples: int = 10,
    shuffle: bool = False,
    tokens: bool = False,
    overrides: Overrides = None,
    code: CodeLike = None,
) -> Iterator[Tuple[Message, Dict[str, List[str]]]]:
    """The first examples of a split, as the agent observes them; of several tasks, mixed.

    n_examples (int): How many; 0 for all.
    shuffle (bool): In the order of the first training epoch, else in the data's.
    tokens (bool): Build the tokenizer and tokenise the texts, too.
    YIELDS (Tuple[Message, Dict[str, List[str]]]): A message, and the tokens of its
        ``text`` and of its first label by field name (empty without ``tokens``).
    RAISES (DialogError): If config or data cannot be used.
    """
    experiment = Experiment.from_config(config, overrides, code, on_cpu=True)
    tokenizer = experiment.tokenizer if tokens else None
    if tokens and tokenizer is None:
        raise experiment.checked.error("there is no [tokenizer]", "leave out --tokens, or add one")
    reading = tolerating(empty_labels=experiment.agent.has_label_sets)
    with experiment.naming_tasks(), reading:
        if tokenizer is not None and tokenizer.needs_texts:
            tokenizer.build(experiment.split("train").texts())
        teacher = experiment.split(split, training=shuffle, seed=experiment.seed)
        teacher.start_epoch(0, experiment.seed)
        n_shown = 0
        while not teacher.epoch_done() and (n_examples == 0 or n_shown < n_examples):
            message = teacher.act()
            teacher.observe(Message(agent="display"))
            n_shown += 1
            yield message, _tokenise(tokenizer, message)


def _tokenise(tokenizer: Any, message: Message) -> Dict[str, List[str]]:
    found: Dict[str, List[str]] = {}
    if tokenizer is not None:
        if message.get("text"):
            found["text"] = tokenizer.pieces(message["text"])
        for field in ("labels", "eval_labels"):
            if message.get(field):
                found[field] = tokenizer.pieces(message[field][0])
    return found


def display_model(
    path: PathLike,
    *,
    split: str = "test",
    n_conversations: int = 5,
    overrides: Overrides = None,
    code: CodeLike = None,
) -> List[List[Exchange]]:
    """A saved model's replies to the first conversations of a split, or of each task; labels
    are not needed.

    RETURNS (List[List[Exchange]]): Of each conversation the messages and the replies to them.
    RAISES (DialogError): If the model or the data cannot be used.
    """
    experiment = Experiment.from_model(path, overrides, code)
    with experiment.working(), tolerating(unlabelled=True):
        teacher = experiment.evaluation_split(split, with_metrics=False)
        return sample_exchanges(experiment.agent, teacher, n_conversations)
