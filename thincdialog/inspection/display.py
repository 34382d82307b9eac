"""Show examples of a task, and a model's replies to them."""

from typing import Any, Dict, Iterator, List, Tuple

from ..config import ConfigLike
from ..evaluation.evaluate_agent import sample_exchanges
from ..evaluation.results import Exchange
from ..formats.context import tolerating
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
    """Yield the first examples of a split, as the agent observes them. Several tasks are mixed.

    config (ConfigLike): Path of a config, its text, a Config, or a dict of its sections.
    split (str): "train", "dev" or "test".
    n_examples (int): Number of examples; 0 for all.
    shuffle (bool): Whether to use the order of the first training epoch instead of the data's
        order.
    tokens (bool): Whether to also build the tokenizer and tokenise the texts.
    overrides (Optional[Mapping[str, Any]]): "section.key" to value.
    code (CodeLike): Python file or files to import first.
    YIELDS (Tuple[Message, Dict[str, List[str]]]): A message, and field name to tokens for its
        ``text`` and its first label (empty without ``tokens``).
    RAISES (DialogError): If the config or the data cannot be used.
    """
    experiment = Experiment.from_config(config, overrides, code, on_cpu=True)
    tokenizer = experiment.tokenizer if tokens else None
    if tokens and tokenizer is None:
        raise experiment.checked.error("there is no [tokenizer]", "leave out --tokens, or add one")
    with tolerating(empty_labels=experiment.agent.has_label_sets):
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
    """Return a saved model's replies to the first conversations of a split, or of each task. The
    data need not have labels.

    path (Union[str, Path]): Folder of the model; or folder of a run, to use its best model.
    split (str): "train", "dev" or "test".
    n_conversations (int): Number of conversations.
    overrides (Optional[Mapping[str, Any]]): Config settings to change, by their dotted names.
    code (CodeLike): Python file or files that register functions named in the config.
    RETURNS (List[List[Exchange]]): The messages of each conversation and the replies to them.
    RAISES (DialogError): If the model or the data cannot be used.
    """
    experiment = Experiment.from_model(path, overrides, code)
    with experiment.working(), tolerating(unlabelled=True):
        teacher = experiment.evaluation_split(split, with_metrics=False)
        return sample_exchanges(experiment.agent, teacher, n_conversations)
