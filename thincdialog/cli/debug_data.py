"""``debug data``: analyse the data, and report likely problems."""

import argparse
import sys
from typing import Any, Dict, List, Sequence, Tuple

from .arguments import CONFIG, SPLITS, argument, common, json_flag
from .output import Messages, coloured, counted, print_json, shorten, table

EXAMPLES = [
    "debug data quickstart.cfg",
    "debug data ranker.cfg --paths.train train.jsonl --paths.dev dev.jsonl --split dev",
    "debug data intent.cfg --paths.train intents.csv --json > data.json",
]

ABOUT = """
Reads all data as training would, but does not train. Lists every row that cannot be read; then
the exit code is 1, unless on_bad_data = "skip" and max_bad_share allow it. Warns about:

  fewer than 100 training examples, or fewer than 10 examples of a class or label
  missing or empty texts or labels
  labels that are not among their candidates, and classes that only dev or test have
  dev or test data of which more than half of the labels are in no list of candidates
  a label that more than 90 % of the training examples have
  more than 10 % duplicates, or more than 1 % of the inputs with two different classes
  more than 1 % of dev or test copied from the training data; one file used for two splits
  more than 1 % of dev or test similar to the training data: 80 % of the words are the same
  duplicate ids
  more than 5 % unknown words
  more than 10 % of the texts truncated by the agent

Warnings do not change the exit code."""

# Number of texts of dev and test to show that are training texts; --json has all.
N_TEXTS = 10

ARGUMENTS = [
    CONFIG,
    argument(
        "--split", "report on one split; dev and test are compared with train", choices=SPLITS
    ),
    json_flag("the whole report"),
]


def run(arguments: argparse.Namespace) -> None:
    """Read the data, and show the report."""
    from ..api import debug_data

    splits = [arguments.split] if arguments.split else None
    report = debug_data(arguments.config, splits=splits, **common(arguments))
    if arguments.json:
        print_json(report.as_dict())
        return
    tasks: Dict[str, List[Any]] = {}
    for part in report.splits:
        tasks.setdefault(part.task, []).append(part)
    for parts in tasks.values():
        _show_task(parts, report)
    if report.regime:
        print(f"{report.regime}\n")
    if report.paddings:
        _show_paddings(report)
    _show_warnings(report)


def _show_task(parts: Sequence[Any], report: Any) -> None:
    rows = [[parts[0].task, *(part.split for part in parts)]]
    columns = [_cells(part) for part in parts]
    for name in columns[0]:
        cells = [column[name] for column in columns]
        if any(cells):  # Leave out a row that is empty for all splits.
            rows.append([name, *(cell or "-" for cell in cells)])
    print(table(rows))
    print("* median / 95th percentile / longest")
    for part in parts:
        if part.held_out:
            print(f"{part.split}: {part.held_out}")
    print(f"\n{report.vocabulary:,} different words in the training data\n")
    for part in parts:
        if part.split == "train":
            _show_labels(part, report)
    for part in parts:
        if part.differing_texts:
            rows = [
                [shorten(text, 60), " | ".join(labels)] for text, labels in part.differing_texts
            ]
            print(table([[f"{part.split}: text with different labels", "labels"], *rows]) + "\n")
        if part.near_texts:
            rows = [[f"{part.split}: text", "same or similar training text"]]
            rows += [[shorten(text, 48) for text in pair] for pair in part.near_texts[:N_TEXTS]]
            if len(part.near_texts) > N_TEXTS:
                rows.append([f"... and {len(part.near_texts) - N_TEXTS:,} more", ""])
            print(table(rows, n_left=2) + "\n")
    for part in parts:
        if part.unknown_words:
            words = ", ".join(f"{word} ({count})" for word, count in part.unknown_words)
            print(f"Unknown words in {part.split}: {words}\n")


def _show_paddings(report: Any) -> None:
    rows = [["padding under", "batches", "padded cells", "largest batch"]]
    for each in report.paddings:
        share, largest = _percent(each.fraction), f"{each.largest:,} cells"
        rows.append([each.name, f"{each.n_batches:,}", share, largest])
    print(table(rows))
    if not report.pads:
        print("This model uses no padding: the table is for models that do.")
    print()


def _show_labels(part: Any, report: Any) -> None:
    has_classes = report.has_classes
    kind = "label" if report.has_label_sets else "class" if has_classes else "reply"
    shown = part.frequent_labels[:5]
    rows = [[f"most frequent {kind}", "examples", "share"]]
    rows += [_label_row(row, part.n_examples) for row in shown]
    if has_classes:
        others = [*part.frequent_labels[5:], *part.rare_labels]
        n_hidden = part.n_labels - len(shown) - len(others[-5:])
        if n_hidden > 0:
            rows.append([f"... {n_hidden:,} others", "", ""])
        rows += [_label_row(row, part.n_examples) for row in others[-5:]]
    print(table(rows))
    if has_classes and part.n_labels > 1:
        most, least = part.frequent_labels[0], (part.rare_labels or part.frequent_labels)[-1]
        times = f"{most[1] / least[1]:,.1f} times"
        print(f"\nThe largest {kind} has {times} as many examples as the smallest {kind}.")
    if part.pairs:
        rows = [["labels that occur together", "examples", "share"]]
        named = [(f"{one} + {other}", count) for one, other, count in part.pairs[:5]]
        print("\n" + table(rows + [_label_row(row, part.n_examples) for row in named]))
    print()


def _label_row(row: Tuple[str, int], total: int) -> List[str]:
    return [shorten(row[0], 52), f"{row[1]:,}", f"{100 * row[1] / max(1, total):.1f} %"]


def _show_warnings(report: Any) -> None:
    messages = Messages(sys.stdout)
    several = len({part.task for part in report.splits}) > 1
    for warning in report.warnings:
        where = f"{warning.task}/{warning.split}" if several else warning.split
        messages.warn(f"{coloured(where, 1)}: {warning.text} - {warning.hint}")
    messages.good(f"{counted(len(report.passed), 'check')} passed")
    if report.warnings:
        messages.warn(counted(len(report.warnings), "warning"))


def _percent(share: float) -> str:
    return f"{100 * share:.1f} %"


def _cells(part: Any) -> Dict[str, str]:
    """Return a split's column of the table, as row name to cell."""

    def count(number: int) -> str:
        return f"{number:,}" if number else ""

    def some(found: Any) -> str:
        return f"{found.count:,} ({_percent(found.share)})" if found.count else ""

    def lengths(name: str) -> str:
        found = part.lengths.get(name)
        return f"{found.median:,} / {found.most_95:,} / {found.longest:,}" if found else ""

    def cut(name: str) -> str:
        return _percent(part.truncated[name]) if part.truncated.get(name) else ""

    turns = part.lengths["turns"]
    is_talk = part.n_conversations != part.n_episodes
    return {
        "conversations": count(part.n_conversations) if is_talk else "",
        "episodes": count(part.n_episodes),
        "examples": count(part.n_examples),
        "turns per episode": (
            f"{turns.mean:.1f} (up to {turns.longest:,})" if turns.longest > 1 else ""
        ),
        "words per text *": lengths("text words"),
        "words per label *": lengths("label words"),
        "tokens per context *": lengths("context tokens"),
        "tokens per label *": lengths("label tokens"),
        "contexts truncated": cut("contexts"),
        "labels truncated": cut("labels"),
        "labels per text *": lengths("labels of a text"),
        "different labels": count(part.n_labels),
        "unknown words": _percent(part.n_unknown / part.n_words) if part.n_unknown else "",
        "with features": count(part.n_with_features),
        "without text": some(part.without_text),
        "empty text": some(part.empty_text),
        "without label": some(part.without_label),
        "empty label": some(part.empty_label),
        "label not in training": some(part.new_labels),
        "label not a candidate": some(part.outside),
        "in no candidate list": some(part.unreachable),
        "duplicates": some(part.duplicates),
        "same input, different label": some(part.contradictions),
        "also in training": some(part.in_train),
        "input also in training": some(part.input_in_train),
        "text also in training": some(part.text_in_train),
        "text nearly in training": some(part.near_train),
        "repeated ids": some(part.repeated_ids),
        "repeated conversations": count(part.shared_ids),
        "in the store": part.store,
        "left out": ", ".join(f"{n.n_skipped + n.n_without:,} {n.unit}" for n in part.skipped),
    }
