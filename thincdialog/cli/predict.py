"""``predict``: a saved model's replies or classes for what nobody has labelled."""

import argparse
import sys

from .arguments import CODE, COLUMNS, DELIMITER, ENCODING, GPU, MODEL, argument, common, positive
from .output import counted, messages

EXAMPLES = [
    "predict output/intent/model-best tickets.csv --text-field body -o answered.csv",
    "predict output/ranker/model-best test.jsonl --top 3 > replies.jsonl",
    "predict output/intent/model-best - < lines.txt",
]

ABOUT = """
Answers a text, a row or a conversation (its last turn) after the other, in the order of the
file and with all that stands there; labels are not needed, and not looked at. CSV and TSV
stay tables, with added columns; all else becomes JSON lines. Any number of rows: 1,024 are
held at a time. A row that cannot be read is left out with one error; the exit code is then 1."""

ARGUMENTS = [
    MODEL,
    argument("FILE", "what to answer, plain or gzip'd; - for what is piped in"),
    argument("-o --output FILE", "where to write; stdout if not given. NAME.gz is compressed"),
    argument("--top N", "candidates or classes to give with scores, the best first", positive, 1),
    argument("--format NAME", "text, jsonl (texts or conversations), csv, tsv, parlai, fbdialog or "
             "babi; told by the file's name and its first line if not given",
             suggest=lambda: ("text", "jsonl", "csv", "tsv", "parlai", "fbdialog", "babi")),
    argument("--text-field NAME", "field or column of the text, as in the model's data if not "
             "given"),
    argument("--label-speaker WHO", "in conversations, who speaks for the model; all but the "
             "last speaker if neither this nor the model's data says"),
    COLUMNS,
    DELIMITER,
    ENCODING,
    argument("--prefix NAME", "what the names of the added fields begin with", default=""),
    argument("--force", "replace an output that is there"),
    CODE,
    GPU,
]  # fmt: skip


def run(arguments: argparse.Namespace) -> int:
    """Answer row by row; 1 if some could not be read."""
    from ..api import predict
    from ..formats.output_file import open_output

    names = ("format", "text_field", "label_speaker", "columns", "delimiter", "encoding")
    options = {**common(arguments, "top", "prefix", *names), "on_error": _say}
    answers = predict(arguments.model, arguments.file, **options)
    if arguments.output in (None, "-"):
        for line in answers.lines():
            sys.stdout.write(f"{line}\n")
            sys.stdout.flush()
    else:
        reads = (arguments.file, *(arguments.code or ()))
        with open_output(arguments.output, arguments.force, reads) as write:
            for line in answers.lines():
                write(line)
        messages.good(f"Wrote {arguments.output}: {counted(answers.bad.n_answered, 'answer')}")
    if answers.bad.n_skipped:
        messages.warn(f"{counted(answers.bad.n_skipped, 'row')} left out")
    return int(answers.bad.n_skipped > 0)


def _say(error: Exception) -> None:
    messages.fail(str(error))
