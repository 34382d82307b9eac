"""docs/limits.md has the same limits as the code, and leaves none out."""

import importlib
import inspect
import re

import pytest

from tests.test_house import ROOT

PAGE = (ROOT / "docs" / "limits.md").read_text(encoding="utf8")
ROWS = [[cell.strip() for cell in line.split("|")[1:-1]] for line in PAGE.splitlines()]
ROWS = [row for row in ROWS if len(row) == 4 and "`" in row[3]]
UNITS = {"MiB": 1 << 20, "GiB": 1 << 30}
# Parts of the package that read or wait, and the names of limits in them.
ROOMS = ("formats", "examples", "data", "files", "runs", "runners", "config", "teachers", "loader")
LIMIT = re.compile(r"^(_?(?:MAX|MOST|LONGEST)(?:_[A-Z]+)*(?:, [A-Z_]+)*) = ", re.MULTILINE)
# These do not limit input: the length of names compared in an error, and the steps requested ahead.
OTHERS = {"config.values.MAX_COMPARED", "runners.cluster.pace.MAX_STEPS"}


def value_of(place):
    """Return a constant of the code, or the default of an argument."""
    name, _, argument = place.rstrip(")").partition("(")
    module, _, attribute = name.rpartition(".")
    found = getattr(importlib.import_module(f"thincdialog.{module}"), attribute)
    return inspect.signature(found).parameters[argument].default if argument else found


@pytest.mark.parametrize("what, told, _, places", ROWS, ids=[row[0] for row in ROWS])
def test_limits_are_those_of_the_code(what, told, _, places):
    number, unit = re.match(r"([\d,]+)(?: (\w+))?", told).groups()
    value = int(number.replace(",", "")) * UNITS.get(unit, 1)
    for place in re.findall(r"`(.*?)`", places):
        assert value_of(place) == value, place


def test_limits_none_is_left_out():
    found = set()
    for room in ROOMS:
        for path in (ROOT / "thincdialog" / room).rglob("*.py"):
            module = ".".join(path.relative_to(ROOT / "thincdialog").with_suffix("").parts)
            for names in LIMIT.findall(path.read_text(encoding="utf8")):
                found |= {f"{module}.{name}" for name in names.split(", ")}
    told = {place for row in ROWS for place in re.findall(r"`(.*?)`", row[3])}
    assert len(found) > 15
    assert found - OTHERS <= told, "docs/limits.md lacks a limit"
