"""``results``: compare training runs in a table."""

import argparse
import csv
import shutil
import sys
from dataclasses import asdict
from typing import Any, List, Optional

from .arguments import argument, json_flag
from .json_output import print_json
from .output import messages, shorten, table

EXAMPLES = [
    "results output/*",
    "results output/quickstart output/small --json",
    "results output --csv > results.csv",
]
# Settings that get a column, room or not, and if there is room; letters of a value; settings
# without a column that are named.
MIN_SETTINGS, MAX_SETTINGS, MAX_LETTERS, MAX_NAMED = 3, 6, 24, 5

ARGUMENTS = [
    argument("RUN...", "output folder of a training run, or one of many", dest="runs"),
    [argument("--csv", "print all that is known as CSV"), json_flag("all that is known")],
]


def run(arguments: argparse.Namespace) -> None:
    """Print the table, the best run first."""
    from ..api import results

    found = results(arguments.runs)
    if arguments.json:
        print_json([asdict(result) for result in found])
    elif arguments.csv:
        rows = [result.flat() for result in found]
        names = list(dict.fromkeys(name for row in rows for name in row))
        writer = csv.DictWriter(sys.stdout, names, lineterminator="\n")
        writer.writeheader()
        writer.writerows(rows)
    else:
        settings = list(found[0].settings)
        room = max(shutil.get_terminal_size((80, 24)).columns, 80)
        shown = settings[:MAX_SETTINGS]
        text = table(result_rows(found, shown))
        while len(settings) > MIN_SETTINGS and shown and max(map(len, text.split("\n"))) > room:
            del shown[-1]
            text = table(result_rows(found, shown))
        print(text)
        if len(settings) > len(shown):
            messages.info(_differences(settings[len(shown) :]))


def result_rows(found: List[Any], settings: List[str]) -> List[List[str]]:
    """Header and rows of the table.

    settings (List[str]): Those that get a column.
    """
    from ..runs.sweep_values import short_name

    metrics = list(dict.fromkeys(result.score_name for result in found if result.score_name))
    one_metric = len(metrics) == 1
    dev, test = (f"{metrics[0]} {split}" if one_metric else split for split in ("dev", "test"))
    columns = {"run": [each.name for each in found]}
    if len({each.task for each in found}) > 1:
        columns["task"] = [each.task or "-" for each in found]
    if not one_metric:
        columns["score"] = [each.score_name or "-" for each in found]
    columns[dev] = [_number(each.score, ".4f") for each in found]
    columns[test] = [_number(each.test, ".4f") for each in found]
    columns["best step"] = [_number(each.best_step, ",") for each in found]
    columns["epochs"] = [_number(each.epochs, ".2f") for each in found]
    columns["seconds"] = [_number(each.seconds, ",.0f") for each in found]
    columns["parameters"] = [_number(each.n_parameters, ",") for each in found]
    taken = [*columns, "state"]
    for setting in settings:
        cells = [_setting(each.settings[setting]) for each in found]
        columns[short_name(setting, settings, taken)] = cells
    if any(each.state != "finished" for each in found):
        columns["state"] = ["" if each.state == "finished" else each.state for each in found]
    return [list(columns), *map(list, zip(*columns.values()))]


def _differences(settings: List[str]) -> str:
    """A line on settings without a column: their names, or where they stand if they are many."""
    if len(settings) <= MAX_NAMED:
        where = ", ".join(settings)
    else:
        sections = dict.fromkeys(name.split(".")[0] for name in settings)
        where = f"{len(settings)} settings of {', '.join(f'[{name}]' for name in sections)}"
    return f"The runs differ in more (--csv shows all): {where}"


def _setting(value: Optional[str]) -> str:
    return "-" if value is None else shorten(" ".join(value.split()), MAX_LETTERS)


def _number(value: Optional[float], form: str) -> str:
    return "-" if value is None else format(value, form)
