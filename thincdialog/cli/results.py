"""``results``: compare training runs in a table."""

import argparse
import csv
import shutil
import sys
from typing import Any, List, Sequence

from ..errors import DialogError, closest
from .arguments import argument, json_flag, listed
from .output import messages, print_json, shorten, table

EXAMPLES = [
    "results output/*",
    "results output/quickstart output/small --json",
    "results output --columns name,width,dev,test/f1",
    "results output --csv > results.csv",
]
# Number of settings that always get a column, and that get one if there is room; maximum length of
# a value; maximum number of settings without a column to name.
MIN_SETTINGS, MAX_SETTINGS, MAX_CHARACTERS, MAX_NAMED = 3, 6, 24, 5
# Format of the numbers in a column, by its name.
FORMS = {"best step": ",", "epochs": ".2f", "seconds": ",.0f", "parameters": ","}
# Format of other floats.
PLACES = ".4f"

ARGUMENTS = [
    argument("RUN...", "output folder of a training run, or a folder of several runs", dest="runs"),
    argument(
        "--columns A,B",
        "columns to show: names as in --csv, settings, or the last part of a setting",
        listed,
    ),
    [argument("--csv", "print every column as CSV"), json_flag("every column")],
]


def run(arguments: argparse.Namespace) -> None:
    """Print the table, the best run first."""
    from ..api import results
    from ..runs.find_runs import lost_rows
    from ..runs.run_table import plain_text

    found = results(arguments.runs)
    for line in lost_rows(arguments.runs):
        messages.warn(line)
    rows = [result.flat() for result in found]
    names = list(dict.fromkeys(name for row in rows for name in row))
    if arguments.columns:
        equal = dict.fromkeys(name for each in found for name in each.config if name not in names)
        names = [_column(name, names, list(equal)) for name in arguments.columns]
        for each, row in zip(found, rows):
            row.update({k: plain_text(raw) for k, raw in each.config.items() if k not in row})
        rows = [{name: row.get(name) for name in names} for row in rows]
    if arguments.json:
        print_json(rows if arguments.columns else found)
    elif arguments.csv:
        writer = csv.DictWriter(sys.stdout, names, lineterminator="\n")
        writer.writeheader()
        writer.writerows(rows)
    elif arguments.columns:
        cells = [[_cell(row[name]) for name in names] for row in rows]
        print(table([arguments.columns, *cells], n_left=int(names[0] == "name")))
    else:
        _show(found)


def _column(name: str, names: List[str], equal: List[str]) -> str:
    """Find the column of this name, or the only column whose name ends in it.

    names (List[str]): Columns that are shown by default.
    equal (List[str]): Settings that are equal in all runs; searched if no other column matches.
    RAISES (DialogError): If no column matches, or several do.
    """
    for known in (names, equal):
        ends = [each for each in known if each.endswith((f".{name}", f"/{name}"))]
        if name in known or len(ends) == 1:
            return name if name in known else ends[0]
        if ends:
            raise DialogError(f"--columns: {name!r} matches several columns: {', '.join(ends)}")
    near = closest(name, [*names, *equal])
    text = f"is not a column{f' - did you mean {near!r}?' if near else ''}"
    more = ", and every setting of the config" * bool(equal)
    raise DialogError(f"--columns: {name!r} {text} (choose from: {', '.join(names)}{more})")


def _show(found: List[Any]) -> None:
    """Print the part of the table that fits the terminal."""
    # Paths are long and least informative, so they come last.
    settings = sorted(found[0].settings, key=lambda name: name.startswith("paths."))
    room = max(shutil.get_terminal_size((80, 24)).columns, 80)
    shown, facts = settings[:MAX_SETTINGS], list(FORMS)
    text = table(result_rows(found, shown, facts))
    while max(map(len, text.split("\n"))) > room and (facts or len(shown) > MIN_SETTINGS):
        del (facts or shown)[-1]
        text = table(result_rows(found, shown, facts))
    print(text)
    if len(settings) > len(shown):
        messages.info(_differences(settings[len(shown) :]))


def result_rows(
    found: List[Any], settings: List[str], facts: Sequence[str] = tuple(FORMS)
) -> List[List[str]]:
    """Return the header and rows of the table: settings in which the runs differ, then results.

    settings (List[str]): Settings that get a column.
    facts (Sequence[str]): Keys of ``FORMS`` that get a column.
    """
    from ..metrics.usual import is_added
    from ..runs.run_table import plain_text
    from ..runs.sweep_values import short_name

    metrics = list(dict.fromkeys(result.score_name for result in found if result.score_name))
    one_metric = len(metrics) == 1
    dev, test = (f"{metrics[0]} {split}" if one_metric else split for split in ("dev", "test"))
    taken = ["run", "task", "state", "score", dev, test, *FORMS]
    columns = {"run": [each.name for each in found]}
    if any(each.state != "finished" for each in found):
        columns["state"] = ["" if each.state == "finished" else each.state for each in found]
    if len({each.task for each in found}) > 1:
        columns["task"] = [each.task or "-" for each in found]
    for setting in settings:
        raws = [each.settings[setting] for each in found]
        cells = [_cell(None if raw is None else plain_text(raw)) for raw in raws]
        columns[short_name(setting, settings, taken)] = cells
    if not one_metric:
        columns["score"] = [each.score_name or "-" for each in found]
    columns[dev] = [_cell(each.score, PLACES) for each in found]
    columns[test] = [_cell(each.test, PLACES) for each in found]
    for split in ("dev", "test"):
        reports = [each.scores.get(split, {}) for each in found]
        for name in dict.fromkeys(name for report in reports for name in report):
            if is_added(name) and "/" not in name and name not in metrics:
                columns[f"{name} {split}"] = [_cell(each.get(name), PLACES) for each in reports]
    for name in facts:
        columns[name] = [_fact(each, name) for each in found]
    return [list(columns), *map(list, zip(*columns.values()))]


def _fact(result: Any, name: str) -> str:
    attribute = "n_parameters" if name == "parameters" else name.replace(" ", "_")
    return _cell(getattr(result, attribute), FORMS[name])


def _differences(settings: List[str]) -> str:
    """Describe settings without a column in a line: by name, or by section if they are many."""
    if len(settings) <= MAX_NAMED:
        where = ", ".join(settings)
    else:
        sections = dict.fromkeys(name.split(".")[0] for name in settings)
        where = f"{len(settings)} settings of {', '.join(f'[{name}]' for name in sections)}"
    return f"The runs also differ in {where} (choose with --columns, or show all with --csv)"


def _cell(value: Any, form: str = "") -> str:
    """Format the value of a cell; ``form`` is the format of a number."""
    if value is None:
        return "-"
    if form or isinstance(value, float):
        return format(value, form or PLACES)
    return shorten(str(value), MAX_CHARACTERS)
