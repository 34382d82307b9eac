"""YAML files: plain values, mistakes, and files that expand to too much."""

import pytest

from tests.fuzzing import within_time
from tests.processes import slow
from thincdialog.errors import DataError
from thincdialog.formats.value_file import parse_yaml


def test_yaml_gives_plain_values():
    text = "a: [1, 'b', null]\nc: &x |\n  d\n  e\nf: [*x, *x]\n"
    assert parse_yaml(text, "a.yml") == {"a": [1, "b", None], "c": "d\ne\n", "f": ["d\ne\n"] * 2}


@pytest.mark.parametrize(
    "text, words",
    [
        ("a: [b", "a.yml:1  not valid YAML: expected"),
        ("a: b\nb: c: d", "a.yml:2  not valid YAML: mapping values"),
        ("a: !!python/object/apply:os.getcwd []", "a.yml:1  not valid YAML: could not determine"),
        (
            "a: |\n  b\n  c\na: |\n  d\n",
            'a.yml:4  not valid YAML: found duplicate key "a" with value',
        ),
        ("[" * 300 + "]" * 300, "a.yml  not readable as YAML: it is nested"),
        slow("[" * 9000 + "]" * 9000, "a.yml  not readable as YAML: maximum recursion"),
        ("a: &a\n- *a\n", "a.yml  not readable as YAML: it is nested"),
    ],
    ids=["list", "mapping", "object", "twice", "deep", "deeper", "circle"],
)
def test_yaml_mistakes_are_named(text, words):
    with pytest.raises(DataError) as caught:
        within_time(lambda: parse_yaml(text, "a.yml"))
    assert str(caught.value).startswith(words) and "\n" not in str(caught.value)


def test_yaml_that_expands_to_too_much_is_refused():
    levels = "".join(f"- &a{n} [*a{n - 1}, *a{n - 1}]\n" for n in range(1, 60))
    with pytest.raises(DataError, match="aliases expand to far too many values"):
        within_time(lambda: parse_yaml(f"- &a0 [x]\n{levels}", "a.yml"))
