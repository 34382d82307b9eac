"""``results``: compare training runs in a table."""

import argparse
import csv
import shutil
import sys
from dataclasses import asdict
from typing import Any, Dict, List, Optional

from .json_output import add_json, print_json
from .output import Messages, shorten, table

EXAMPLES = [
    "results output/*",
    "results output/small output/large --json",
    "results output --csv > results.csv",
]
# Settings that get a column, room or not, and if there is room; letters of a value; settings
# without a column that are named.
MIN_SETTINGS, MAX_SETTINGS, MAX_LETTERS, MAX_NAMED = 3, 6, 24, 5


def add_arguments(parser: argparse.ArgumentParser) -> None:
    """Declare the command's options."""
    parser.add_argument(
        "runs", metavar="RUN", nargs="+", help="output folder of a training run, or one of many"
    )
    forms = parser.add_mutually_exclusive_group()
    forms.add_argument("--csv", action="store_true", help="print all that is known as CSV")
    add_json(forms, "all that is known")


def run(arguments: argparse.Namespace, overrides: Dict[str, str]) -> int:
    """Print the table, the best run first."""
    from ..api import results

    found = results(arguments.runs)
    if arguments.json:
        print_json([asdict(result) for result in found])
    elif arguments.csv:
        _write_csv([result.flat() for result in found])
    else:
        settings = list(found[0].settings)
        room = max(shutil.get_terminal_size((80, 24)).columns, 80)
        shown = settings[:MAX_SETTINGS]
        while len(settings) > MIN_SETTINGS and shown and _columns(found, shown) > room:
            del shown[-1]
        print(table(result_rows(found, shown)))
        if len(settings) > len(shown):
            Messages(sys.stderr).info(_differences(settings[len(shown) :]))
    return 0


def result_rows(found: List[Any], settings: List[str]) -> List[List[str]]:
    """Header and rows of the table.

    settings (List[str]): Those that get a column.
    """
    metrics = list(dict.fromkeys(result.score_name for result in found if result.score_name))
    tasks = {result.task for result in found}
    one_metric, one_task = len(metrics) == 1, len(tasks) == 1
    dev, test = (f"{metrics[0]} {split}" if one_metric else split for split in ("dev", "test"))
    header = ["run", *([] if one_task else ["task"]), *([] if one_metric else ["score"]), dev, test]
    header += ["best step", "epochs", "seconds", "parameters"]
    header += [*_short_names(settings, header), "state"]
    rows = [header]
    for result in found:
        row = [result.name]
        row += [] if one_task else [result.task or "-"]
        row += [] if one_metric else [result.score_name or "-"]
        row += [_number(result.score, ".4f"), _number(result.test, ".4f")]
        row += [_number(result.best_step, ","), _number(result.epochs, ".2f")]
        row += [_number(result.seconds, ",.0f"), _number(result.n_parameters, ",")]
        row += [_setting(result.settings[name]) for name in settings]
        rows.append([*row, "" if result.state == "finished" else result.state])
    if not any(row[-1] for row in rows[1:]):
        rows = [row[:-1] for row in rows]
    return rows


def _columns(found: List[Any], settings: List[str]) -> int:
    return max(map(len, table(result_rows(found, settings)).splitlines()))


def _differences(settings: List[str]) -> str:
    """A line on settings without a column: their names, or where they stand if they are many."""
    if len(settings) <= MAX_NAMED:
        where = ", ".join(settings)
    else:
        sections = dict.fromkeys(name.split(".")[0] for name in settings)
        where = f"{len(settings)} settings of {', '.join(f'[{name}]' for name in sections)}"
    return f"The runs differ in more (--csv shows all): {where}"


def _short_names(settings: List[str], taken: List[str]) -> List[str]:
    """As much of the end of each name as tells it from the others, and from other columns."""
    names = []
    for setting in settings:
        parts = setting.split(".")
        length = 1
        while length < len(parts) and (
            ".".join(parts[-length:]) in taken
            or any(o != setting and o.split(".")[-length:] == parts[-length:] for o in settings)
        ):
            length += 1
        names.append(".".join(parts[-length:]))
    return names


def _setting(value: Optional[str]) -> str:
    return "-" if value is None else shorten(" ".join(value.split()), MAX_LETTERS)


def _number(value: Optional[float], form: str) -> str:
    return "-" if value is None else format(value, form)


def _write_csv(rows: List[Dict[str, Any]]) -> None:
    names = list(dict.fromkeys(name for row in rows for name in row))
    writer = csv.DictWriter(sys.stdout, names, lineterminator="\n")
    writer.writeheader()
    writer.writerows(rows)
