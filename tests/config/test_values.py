import pytest

from thincdialog.config import values


@pytest.mark.parametrize("number", [values.MAX_NUMBER + 1, -values.MAX_NUMBER - 1, 10**40])
@pytest.mark.parametrize("form", ["{}", "[1, {}]", '{{"a": [{}]}}'])
def test_values_beyond_64_bits_are_mistakes(number, form):
    message, hint = values.find_value_mistake(form.format(number))
    assert message.startswith("is ")
    assert hint == "write a number of at most 9,223,372,036,854,775,807"


def test_values_and_their_parts_in_order():
    value = {"a": [1, {"b": "x"}], "c": None}
    assert list(values.parts_of(value)) == [value, [1, {"b": "x"}], 1, {"b": "x"}, "x", None]


@pytest.mark.parametrize(
    "raw, value",
    [
        ("True", True), ("None", None), ("words and more", "words and more"),
        ("${a.b}", "${a.b}"), ('"${a.b}/c"', '"${a.b}/c"'), ('["${a.b}"]', ["${a.b}"]),
    ],
)  # fmt: skip
def test_values_parse(raw, value):
    assert values.parse_value(raw) == value


@pytest.mark.parametrize(
    "given_value, value",
    [
        ("3", 3), ("0.5", 0.5), ("true", True), ("null", None), ("None", None),
        ("[1, 2]", [1, 2]), ("words", "words"), ('"3"', "3"), (3, 3),
        ("costs $5", "costs $$5"), ("${paths.dev}", "${paths.dev}"),
    ],
)  # fmt: skip
def test_values_of_overrides(given_value, value):
    assert values.read_override(given_value) == value
