"""``predict``: answer unlabelled data with a saved model."""

from contextlib import suppress
from itertools import chain, islice, zip_longest
from pathlib import Path
from typing import Any, Callable, Dict, Iterable, Iterator, Optional, Union

from ..errors import MAX_LISTED, DataError, DialogError
from ..formats.answer_lines import answer_lines
from ..formats.context import BadData, Bookmark
from ..formats.file_list import file_list
from ..formats.guessing import check_guess, first_lines, guess_format, is_cut_so
from ..formats.inputs import (
    TABLES,
    InputReading,
    InputRow,
    check_format,
    format_by_suffix,
    format_of,
    given_inputs,
    has_records,
    layout_of,
    read_inputs,
)
from ..formats.layout_file import CorpusLayout, layout_place, read_layout
from ..formats.text_file import STDIN
from ..training.experiment import CodeLike, Overrides, PathLike
from ..training.trained_model import Reply, TrainedModel, check_wanted

# Number of rows that are read, answered in batches and yielded together. Memory holds no more rows.
N_ROWS = 1024
# Settings with which the tasks of a model read their files. Input is read with the same settings.
OF_TASKS = (
    "text_field", "layout", "system_turns", "label_speaker", "encoding", "delimiter", "columns",
    "label_separator",
)  # fmt: skip

# Formats without a file name suffix, by the teachers that read them.
FORMS = {"thincdialog.ParlAIText.v1": "parlai", "thincdialog.NumberedText.v1": "babi"}

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
    """Return a saved model's replies or classes for the rows of a file, in their order.

    path (Union[str, Path]): Folder of the model.
    source (Union[str, Path, Iterable]): A file, a folder or a pattern, as for a teacher; "-" for
        standard input; or an iterable of texts, or of mappings with the fields of JSON lines.
    overrides (Optional[Mapping[str, Any]]): Changes to the model's config.
    code (Union[str, Path, None]): Python file that registers the functions that the config names.
    **options (Any): Options of ``Answers``, such as `top`.
    RETURNS (Answers): An iterable of the rows with their answers.
    RAISES (DialogError): If the model or the file cannot be used.
    """
    return Answers(TrainedModel(path, overrides, code), source, **options)


class Answers:
    """Iterate over rows with the answers of a saved model. Each row (a dict) has all its fields,
    followed by `reply`, `score` (its probability, if the agent returns one) and, if ``top`` is
    above 1, the best candidates or classes: `candidates`, a list of `text` and `score`; in a
    table `candidate_1`, `score_1` and so on. If the agent predicts several labels, `reply` and
    `score` are lists; in a table they are texts, joined by the separator of the labels in the
    training data, or "|".

    In a conversation, the last turn that is not the model's own is answered. A row that is not a
    message has a `reply` of None: a blank line of a text, and a turn before the last one if each
    row is a turn.

    ``N_ROWS`` rows are answered at a time, so memory does not grow with the file. A setting in
    ``OF_TASKS`` is used for reading if it is the same in all tasks of the model that have it. The
    tasks' `columns` are used only if the first line is not a header.

    model (TrainedModel): The saved model.
    source (Union[str, Path, Iterable]): See ``predict()``.
    top (int): Number of candidates or classes of each row, the best first, 1 or more.
    threshold (Optional[float]): If the best candidate is less probable, 0.0 to 1.0, it is rejected:
        the reply is the agent's ``reject_class``. If None, the model's threshold, or its
        thresholds of several labels. If replies may be rejected, each row also gets `guess`, the
        best candidate, and the score is that of `guess`.
    prefix (str): Prefix of the names of the added fields.
    on_error (Optional[Callable]): Called for each row that cannot be read, which is left out;
        if None, the first such row raises an error.
    encoding (Optional[str]): Encoding of the file; if None, the encoding of a byte order mark, the
        tasks' encoding, or UTF-8.
    output (Optional[str]): Name of the file that ``lines()`` is for: .csv, .tsv or .jsonl, each
        with or without .gz after it. If None, or with another suffix, the source's format is used.
    **reading (Any): Fields of ``InputReading``: `format` (also the name of a layout, or the path
        of its file), `text_field`, `label_speaker`, `system_turns`, `columns` or `delimiter`. A
        field that is None is ignored.
    RAISES (DialogError): If there is no such format, or it cannot hold the model's input; during
        iteration, if there is a threshold and the model returns no probabilities.

    form (str): Format of ``lines()``: "csv", "tsv" or "jsonl".
    bad (BadData): Counts of the rows that were read so far and that could not be read; its
        attribute `n_answered` is the number of answers.
    """

    def __init__(
        self,
        model: TrainedModel,
        source: Source,
        *,
        top: int = 1,
        threshold: Optional[float] = None,
        prefix: str = "",
        on_error: Optional[OnError] = None,
        encoding: Optional[str] = None,
        output: Optional[str] = None,
        **reading: Any,
    ):
        check_wanted(top, threshold)
        self.model, self.top, self.prefix = model, top, prefix
        self.threshold = threshold
        least = model.agent.rejects_below if threshold is None else threshold
        self.may_reject = least != 0.0 and not model.agent.has_label_sets
        self.source = str(source) if isinstance(source, Path) else source
        if self.source == "/dev/stdin":
            self.source = STDIN
        self.files = file_list(self.source) if isinstance(self.source, str) else []
        self.on_error = on_error
        given = {name: value for name, value in reading.items() if value is not None}
        of_tasks = _task_settings(model)
        own_encoding, own_layout = of_tasks.pop("encoding", None), of_tasks.pop("layout", None)
        self.encoding = encoding or own_encoding
        self.separator = of_tasks.pop("label_separator", "|")
        # A given format or text field replaces the layout of the tasks.
        name = given.get("format", None if "text_field" in given else own_layout)
        layout = None
        if name is not None:
            # Read a custom layout from the model's folder, because its original file may be gone.
            kept = layout_place(model.path, name)
            is_kept = name == own_layout and kept.is_file()
            layout = read_layout(kept) if is_kept else layout_of(name)
        if layout is not None and "format" not in given and not self._may_be_in(layout):
            layout = None
        if layout is not None:
            given["format"] = None
            if "text_field" in given:
                raise DialogError(f"text_field has no meaning with the layout '{name}'")
        elif "system_turns" in given:
            raise DialogError("system_turns has a meaning only with a layout, such as 'messages'")
        self._begin()
        own = InputReading(
            **{**of_tasks, **given}, layout=layout, may_have_header="columns" not in given
        )
        form = None
        if self.files:
            forms = {
                format_of(path, own) or _parlai_format(model, path, self.encoding): path
                for path in self.files
            }
            if len(forms) > 1:
                first, second, *_ = forms.values()
                raise DataError(first, f"is in another format than {second}: predict one at a time")
            (form,) = forms
            own = own._replace(format=form)
        for path in self.files if layout is None and "format" not in given else ():
            check_guess(path, form, self.encoding, own.text_field)
        of_source = form if form in TABLES else "jsonl"
        self.is_table = of_source in TABLES
        self.form = format_by_suffix(output or "") or of_source
        agent, reads = model.agent, model.agent.reading()
        self.reading = own._replace(
            taken=list(self._new_fields(None)),
            n_features=reads.n_features,
            other_fields=reads.other_fields,
            classes=frozenset(agent.classes) or None,
        )
        if self.files:
            check_format(self.files[0], form, self.reading)

    def _may_be_in(self, layout: CorpusLayout) -> bool:
        """Return whether the source may be in the layout of the model's data."""
        path = self.files[0] if self.files else None
        if not layout.is_of_lines:
            return has_records(path)
        if path is None or not Path(path).is_file():
            return False
        return is_cut_so(path, layout, first_lines(path, self.encoding))

    def _begin(self) -> None:
        name = self.source if isinstance(self.source, str) else "rows"
        self.bad = _ReportingBadData(name, self.on_error)
        self._at = Bookmark()
        self._at.bad = None if self.on_error is None else self.bad
        self._at.encoding, self._at.has_flags = self.encoding, True

    def __iter__(self) -> Iterator[Dict[str, Any]]:
        self._begin()
        rows = self._of_files()
        if not isinstance(self.source, str):
            rows = given_inputs(self.source, self.reading, self._at)
        while chunk := list(islice(self._counted(rows), N_ROWS)):
            messages = [one.message for one in chunk if one.message is not None]
            replies = iter(self.model.answer(messages, self.top, self.threshold))
            self.bad.n_answered += len(messages)
            for row, message in chunk:
                yield {**row, **self._new_fields(None if message is None else next(replies))}

    def _of_files(self) -> Iterator[InputRow]:
        for number, path in enumerate(self.files):
            self._at.open(number)
            yield from read_inputs(path, self.reading, self._at)

    def lines(self) -> Iterator[str]:
        """Yield the same rows as lines of text, in the format ``form``.

        RAISES (DataError): If a row has a field that the table has no column for.
        """
        rows = iter(self)
        first = list(islice(rows, 1))
        # Now the columns and the delimiter of the source are known.
        columns = self._at.columns
        delimiter = self.reading.delimiter or self._at.delimiter or ","
        names = list(first[0]) if first else [*(columns or ()), *self.reading.taken]
        has_header = columns is not None or (bool(first) and not self.is_table)
        yield from answer_lines(chain(first, rows), self.form, names, delimiter, has_header)

    def _counted(self, rows: Iterator[InputRow]) -> Iterator[InputRow]:
        for row in rows:
            self.bad.n_read += row.message is not None
            yield row

    def _new_fields(self, reply: Optional[Reply]) -> Dict[str, Any]:
        """Return the fields that are added to a row; their values are empty without a reply."""
        reply, is_table = reply or Reply(None, [], []), self.form in TABLES
        best = list(zip_longest((each.text for each in reply.candidates), reply.scores))
        guess = reply.text if reply.guess is None else reply.guess.text
        # A reply that is not among the candidates has no score of its own.
        fields = {"reply": reply.text, "score": dict(best).get(guess)}
        if reply.labels is not None:
            columns = [list(column) for column in zip(*reply.labels)] or [[], []]
            texts = [self.separator.join(map(str, column)) for column in columns]
            fields = dict(zip(fields, texts if is_table else columns))
        if self.may_reject:
            fields["guess"] = guess
        if self.top > 1 and is_table:
            best += [(None, None)] * (self.top - len(best))
            for number, pair in enumerate(best, start=1):
                fields.update(zip((f"candidate_{number}", f"score_{number}"), pair))
        elif self.top > 1:
            keys = ("text", "score") if reply.scores else ("text",)
            fields["candidates"] = [dict(zip(keys, pair)) for pair in best]
        return {self.prefix + name: value for name, value in fields.items()}


class _ReportingBadData(BadData):
    """Report each problem as it occurs, and raise an error if the first rows have nothing else."""

    def __init__(self, path: str, on_error: Optional[OnError]):
        super().__init__(path)
        self.on_error, self.n_answered = on_error, 0

    def add(self, error: DataError, is_same: bool = False) -> None:
        super().add(error, is_same)
        if self.on_error is not None:
            self.on_error(error)
        if not self.n_read and self.n_problems == MAX_LISTED:
            text = f"none of the first {MAX_LISTED} rows can be read: check the format"
            raise DataError(self.path, text)


def _task_settings(model: TrainedModel) -> Dict[str, Any]:
    """Return the reading settings of a model's tasks that are the same in all of them."""
    tasks = model.checked.interpolated["tasks"].values()
    found: Dict[str, Any] = {}
    for name in OF_TASKS:
        values = [task[name] for task in tasks if name in task]
        # A custom teacher may give the name another meaning.
        kind = list if name == "columns" else str
        is_known = all(isinstance(value, kind) for value in values)
        # A layout that only some tasks have does not apply to JSON lines of the others.
        is_known &= name != "layout" or len(values) == len(tasks)
        if values and is_known and all(value == values[0] for value in values):
            found[name] = values[0]
    return found


def _parlai_format(model: TrainedModel, path: str, encoding: Optional[str]) -> Optional[str]:
    """Return the format of ParlAI in which the tasks read their files, if a file looks like it."""
    forms = set()
    for task in model.checked.interpolated["tasks"].values():
        form = FORMS.get(task["@teachers"])
        forms.add("fbdialog" if form == "babi" and not task["supporting"] else form)
    form = forms.pop() if len(forms) == 1 else None
    if form is not None:
        with suppress(DataError):  # Raised if the format cannot be guessed.
            found = guess_format(path, encoding)
            if found == form or {found, form} == {"babi", "fbdialog"}:
                return form
    return None
