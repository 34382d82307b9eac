"""``predict``: write a saved model's replies or classes for unlabelled data."""

import argparse
import sys

from .arguments import (
    GPU,
    INPUT_TEXT,
    MODEL,
    THRESHOLD,
    argument,
    common,
    input_format,
    positive,
)
from .output import counted, for_stdout, messages

EXAMPLES = [
    "predict output/intent/model-best tickets.csv --text-field body -o answered.csv",
    "predict output/ranker/model-best test.jsonl --top 3 > replies.jsonl",
    "predict output/ranker/model-best chats.json --format sharegpt --threshold 0.2",
    "predict output/intent/model-best - < lines.txt",
]

ABOUT = """
Answers each text, row or conversation of a file. The output keeps the order and all fields of the
input. Labels are ignored. In a conversation, the model answers the partner's last turn. The name
of the output file chooses a table (.csv, .tsv) or JSON lines (.jsonl). Without such a name, a CSV
or TSV file stays a table, and every other format becomes JSON lines. Line n of a text file becomes
line n of the output; if the line is blank, the reply is null. Files may have any size, because only
1,024 rows are held in memory at a time. If a row is invalid, an error names the row, the row is
left out, and the exit code is 1."""

ARGUMENTS = [
    MODEL,
    argument("FILE", "input file, folder, or pattern in quotes; files may be gzipped or "
             "zipped; - for stdin"),
    argument("-o --output >FILE", "output file: .csv, .tsv or .jsonl; NAME.gz is gzip-compressed "
                "(default: stdout)"),
    argument("--top N", "candidates or classes to write, best first", positive, 1),
    THRESHOLD,
    input_format("that of the model's training data, else detected in the file"),
    argument("--text-field NAME", "field or column of the text (default: as in the training data)"),
    argument("--label-speaker WHO", "in conversations, the speaker that the model replies as "
             "(default: as in the training data or the layout, else every speaker but the last)"),
    argument("--system-turns HOW", "with a layout, use of system turns: context, field or drop "
             "(default: as in the training data)",
             choices=("context", "field", "drop")),
    *INPUT_TEXT,
    argument("--prefix NAME", "prefix for the names of the new fields (default: none)", default=""),
    argument("--force", "overwrite the output file"),
    GPU,
]  # fmt: skip


def run(arguments: argparse.Namespace) -> int:
    """Answer row by row, and return the exit code: 1 if some rows could not be read."""
    from ..api import predict
    from ..formats.output_file import open_output

    names = ("format", "text_field", "label_speaker", "system_turns", "columns", "delimiter")
    options = common(arguments, "top", "threshold", "prefix", "encoding", *names)
    options.update(on_error=lambda error: messages.fail(str(error)), output=arguments.output)
    answers = predict(arguments.model, arguments.file, **options)
    if arguments.output in (None, "-"):
        for line in answers.lines():
            sys.stdout.write(f"{for_stdout(line) if answers.form == 'jsonl' else line}\n")
            sys.stdout.flush()
    else:
        with open_output(arguments.output, arguments.force) as write:
            for line in answers.lines():
                write(line)
        messages.good(f"Wrote {arguments.output}: {counted(answers.bad.n_answered, 'answer')}")
    if answers.bad.n_skipped:
        messages.warn(f"{counted(answers.bad.n_skipped, 'row')} left out")
    return int(answers.bad.n_skipped > 0)
