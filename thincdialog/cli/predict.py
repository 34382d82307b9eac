"""``predict``: a saved model's replies or classes for what nobody has labelled."""

import argparse
import sys
from typing import Iterable

from .arguments import (
    CODE,
    COLUMNS,
    DELIMITER,
    ENCODING,
    GPU,
    MODEL,
    THRESHOLD,
    argument,
    common,
    positive,
)
from .output import counted, messages
from .writing import check_outputs

EXAMPLES = [
    "predict output/intent/model-best tickets.csv --text-field body -o answered.csv",
    "predict output/ranker/model-best test.jsonl --top 3 > replies.jsonl",
    "predict output/ranker/model-best chats.json --format sharegpt --threshold 0.2",
    "predict output/intent/model-best - < lines.txt",
]

ABOUT = """
Answers each text, row or conversation of a file, in its order and with all its fields. Labels
are not needed, and not looked at. In a conversation, the partner's last turn is answered. CSV and
TSV stay tables, with added columns; all else becomes JSON lines. Line n of a text file is line n
of the output: where it is blank, the reply is null. Files may have any size: 1,024 rows are held
at a time. A row that cannot be read is named and left out; the exit code is then 1."""

FORMATS = "text, jsonl, csv, tsv, parlai, fbdialog, babi"


def _formats() -> Iterable[str]:
    from ..formats.layout_file import shipped_layouts

    return (*FORMATS.split(", "), *shipped_layouts())


ARGUMENTS = [
    MODEL,
    argument("FILE", "what to answer, plain or gzip'd; - for what is piped in"),
    argument("-o --output FILE", "where to write; stdout if not given. NAME.gz is compressed"),
    argument("--top N", "candidates or classes to give with scores, the best first", positive, 1),
    THRESHOLD,
    argument("--format NAME", f"{FORMATS}; or a layout of thincdialog.JSONLayout.v1, such as "
             "messages, sharegpt or my.yml. If not given: as in the model's data, or as the "
             "file's name and first line tell", suggest=_formats),
    argument("--text-field NAME", "field or column of the text, as in the model's data if not "
             "given"),
    argument("--label-speaker WHO", "in conversations, who speaks for the model; if not given, as "
             "in the model's data or the layout, or else all but the last speaker"),
    argument("--system-turns HOW", "with a layout, what becomes of a system's turns: context, "
             "field or drop; as in the model's data if not given",
             choices=("context", "field", "drop")),
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

    check_outputs(arguments, "output")
    names = ("format", "text_field", "label_speaker", "system_turns", "columns", "delimiter")
    options = common(arguments, "top", "threshold", "prefix", "encoding", *names)
    options["on_error"] = _say
    answers = predict(arguments.model, arguments.file, **options)
    if arguments.output in (None, "-"):
        for line in answers.lines():
            sys.stdout.write(f"{line}\n")
            sys.stdout.flush()
    else:
        with open_output(arguments.output, arguments.force) as write:
            for line in answers.lines():
                write(line)
        messages.good(f"Wrote {arguments.output}: {counted(answers.bad.n_answered, 'answer')}")
    if answers.bad.n_skipped:
        messages.warn(f"{counted(answers.bad.n_skipped, 'row')} left out")
    return int(answers.bad.n_skipped > 0)


def _say(error: Exception) -> None:
    messages.fail(str(error))
