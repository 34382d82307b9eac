"""``predict``: a saved model's replies or classes for what nobody has labelled."""

from contextlib import ExitStack
from itertools import islice
from pathlib import Path
from typing import Any, Callable, Dict, Iterable, Iterator, List, Optional, Sequence, Union

from ..errors import MAX_LISTED, DataError
from ..examples import MemoryStore
from ..formats.answer_lines import AnswerLines
from ..formats.bad_data import BadData
from ..formats.bookmark import Bookmark
from ..formats.inputs import (
    TABLES,
    InputReading,
    InputRow,
    format_of,
    given_inputs,
    read_inputs,
)
from ..formats.text_file import STDIN
from ..messages import Message
from ..teachers import Teacher
from ..training.experiment import CodeLike, Experiment, Overrides, PathLike

# Rows that are read, answered in batches and given out together: what is held at a time.
N_ROWS = 1024
# How the tasks of a model read their files, and so what it is to answer.
OF_TASKS = ("text_field", "label_speaker", "encoding", "delimiter", "columns")

Source = Union[str, Path, Iterable[Any]]
OnError = Callable[[DataError], Any]


def predict(
    path: PathLike,
    source: Source,
    *,
    overrides: Overrides = None,
    code: CodeLike = None,
    **options: Any,
) -> "Answers":
    """A saved model's replies or classes for the rows of a file, in their order.

    path (Union[str, Path]): Folder of the model.
    source (Union[str, Path, Iterable]): A file, "-" for what is piped in; or texts, or
        mappings as JSON lines hold them.
    overrides (Optional[Mapping[str, Any]]): Changes to the model's config.
    code (Union[str, Path, None]): Python file that registers what its config names.
    **options (Any): Of ``Answers``, such as `top`.
    RETURNS (Answers): To be iterated over: each row with its answer.
    RAISES (DialogError): If the model or the file cannot be used.
    """
    return Answers(Experiment.from_model(path, overrides, code), source, **options)


class Answers:
    """The answers of an experiment's agent to rows. Gives each row (a dict) with all its fields
    and, behind them, `reply`, `score` (its probability, if the agent gives one for it) and, if
    ``top`` is above 1, the best candidates or classes: `candidates`, a list of `text` and
    `score`; in a table `candidate_1`, `score_1` and so on.

    ``N_ROWS`` are answered at a time, in the batches of the world that evaluates: memory does
    not grow with the file. Rows are read with those of ``OF_TASKS`` that the model's own tasks
    have, and agree in; with their columns, if the first line is no header.

    experiment (Experiment): Of a saved model.
    source (Union[str, Path, Iterable]): See ``predict``.
    top (int): Candidates or classes to give, the best first, 1 or more.
    prefix (str): What the names of the added fields begin with.
    on_error (Optional[Callable]): Called for each row that cannot be read, which is left out;
        None: the first of them is raised.
    encoding (Optional[str]): Of the file; if None, that of the tasks' or UTF-8, or as a byte order
        mark says.
    **reading (Any): Fields of ``InputReading``: `format`, `text_field`, `label_speaker`,
        `columns`, `delimiter`; None as if it was not given.
    RAISES (DialogError): If there is no such format.

    bad (BadData): How many rows were read so far, and what could not be; its `n_answered` is
        the number of answers.
    """

    def __init__(
        self,
        experiment: Experiment,
        source: Source,
        *,
        top: int = 1,
        prefix: str = "",
        on_error: Optional[OnError] = None,
        encoding: Optional[str] = None,
        **reading: Any,
    ):
        if top < 1:
            raise ValueError(f"top = {top}, expected 1 or more")
        self.experiment, self.top, self.prefix = experiment, top, prefix
        self.source = str(source) if isinstance(source, Path) else source
        if self.source == "/dev/stdin":
            self.source = STDIN
        self.on_error = on_error
        given = {name: value for name, value in reading.items() if value is not None}
        of_tasks = _of_tasks(experiment)
        own_encoding = of_tasks.pop("encoding", None)
        self.encoding = encoding or own_encoding
        self._begin()
        own = InputReading(**{**of_tasks, **given}, may_have_header="columns" not in given)
        form = format_of(self.source, own) if isinstance(self.source, str) else None
        self.form = form if form in TABLES else "jsonl"
        agent = experiment.agent
        classes = frozenset(agent.choices or ()) if agent.has_classes else None
        self.reading = own._replace(
            taken=self._added_names(),
            n_features=agent.reading().n_features,
            classes=classes or None,
        )

    def _begin(self) -> None:
        name = self.source if isinstance(self.source, str) else "rows"
        self.bad = _TellingBadData(name, self.on_error)
        self._at = Bookmark()
        self._at.bad = None if self.on_error is None else self.bad
        self._at.encoding, self._at.has_flags = self.encoding, True

    def __iter__(self) -> Iterator[Dict[str, Any]]:
        self._begin()
        if isinstance(self.source, str):
            rows = read_inputs(self.source, self.reading, self._at)
        else:
            rows = given_inputs(self.source, self.reading, self._at)
        with ExitStack() as stack:
            while chunk := list(islice(self._counted(rows), N_ROWS)):
                # Agents remember the candidates of an evaluation: a file may have any number.
                has_own = any("label_candidates" in one.message for one in chunk)
                if has_own or not self.bad.n_answered:
                    stack.close()
                    stack.enter_context(self.experiment.agent.evaluating())
                replies = self._replies([one.message for one in chunk])
                self.bad.n_answered += len(chunk)
                for (row, _), reply in zip(chunk, replies):
                    yield {**row, **self._added(reply)}

    def lines(self) -> Iterator[str]:
        """The same as lines: of a table if the source is one, else of JSON."""
        lines = None
        for row in self:
            if lines is None:
                delimiter = self.reading.delimiter or self._at.delimiter or ","
                has_header = self._at.columns is not None
                lines = AnswerLines(self.form, delimiter, has_header)
            yield from lines(row)

    def _counted(self, rows: Iterator[InputRow]) -> Iterator[InputRow]:
        for row in rows:
            self.bad.n_read += 1
            yield row

    def _replies(self, messages: Sequence[Message]) -> List[Message]:
        store = MemoryStore(is_held=False)
        for number, message in enumerate(messages):
            store.append([Message(message, id=str(number))])
        replies: List[Message] = [Message()] * len(messages)
        experiment = self.experiment
        with experiment.working():
            teacher = Teacher({"predict": store}, origin=self.bad.path).for_split("predict")
            with experiment.evaluation["world"](teacher, experiment.agent) as world:
                world.start_epoch(0, 0)
                while not world.epoch_done():
                    world.parley()
                    # In a world of many, others speak behind them.
                    asked, said = world.acts[:2]
                    pairs = [(asked, said)] if isinstance(asked, Message) else zip(asked, said)
                    for message, reply in pairs:
                        replies[int(message["id"])] = reply
        return replies

    def _added_names(self) -> List[str]:
        names = ["reply", "score"]
        if self.top > 1 and self.form in TABLES:
            numbers = range(1, self.top + 1)
            names += [f"{name}_{number}" for number in numbers for name in ("candidate", "score")]
        elif self.top > 1:
            names.append("candidates")
        return [self.prefix + name for name in names]

    def _added(self, reply: Message) -> Dict[str, Any]:
        text, texts = reply.get("text"), reply.get("text_candidates") or ()
        given = reply.get("candidate_probabilities") or reply.get("candidate_scores") or ()
        scores = [float(score) for score in given]
        # What is said in place of a class that was rejected has no score of its own.
        is_scored = text in texts and bool(scores)
        cells: List[Any] = [text, scores[texts.index(text)] if is_scored else None]
        best = [
            {"text": texts[n], **({"score": scores[n]} if scores else {})}
            for n in range(min(self.top, len(texts)))
        ]
        if self.form in TABLES:
            best += [{}] * (self.top - len(best))
            cells += [one.get(name) for one in best for name in ("text", "score")]
        else:
            cells.append(best)
        return dict(zip(self.reading.taken, cells))


class _TellingBadData(BadData):
    """Tells of each problem as it comes, and gives up where nothing else comes."""

    def __init__(self, path: str, on_error: Optional[OnError]):
        super().__init__(path)
        self.on_error, self.n_answered = on_error, 0

    def add(self, error: DataError, is_same: bool = False) -> None:
        super().add(error, is_same)
        if self.on_error is not None:
            self.on_error(error)
        if not self.n_read and self.n_problems == MAX_LISTED:
            text = f"none of the first {MAX_LISTED} rows can be read: see that the format is right"
            raise DataError(self.path, text)


def _of_tasks(experiment: Experiment) -> Dict[str, Any]:
    """How the tasks of a config read their data, where they agree."""
    tasks = experiment.checked.interpolated["tasks"].values()
    found: Dict[str, Any] = {}
    for name in OF_TASKS:
        values = [task[name] for task in tasks if name in task]
        # Tasks of a user's may call something else so.
        is_known = all(
            _is_text(value) or name == "columns" and _are_texts(value) for value in values
        )
        if values and is_known and all(value == values[0] for value in values):
            found[name] = values[0]
    return found


def _is_text(value: Any) -> bool:
    return isinstance(value, str)


def _are_texts(value: Any) -> bool:
    return isinstance(value, list) and all(map(_is_text, value))
