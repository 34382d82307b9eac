import pytest
from hypothesis import given
from hypothesis import strategies as st

from thincdialog.config.values import (
    MAX_NUMBER,
    dump_value,
    find_value_mistake,
    parse_value,
    parts_of,
    read_override,
)

json_values = st.recursive(
    st.none()
    | st.booleans()
    | st.integers(-MAX_NUMBER, MAX_NUMBER)
    | st.floats(allow_nan=False, allow_infinity=False)
    | st.text(),
    lambda inner: st.lists(inner, max_size=3) | st.dictionaries(st.text(), inner, max_size=3),
    max_leaves=6,
)


@given(json_values)
def test_values_dump_and_parse(value):
    text = dump_value(value)
    # A string that looks like a variable stays as written, for the variables.
    if not (isinstance(value, str) and "${" in value):
        assert parse_value(text) == value
        assert find_value_mistake(text) is None


@pytest.mark.parametrize("number", [MAX_NUMBER + 1, -MAX_NUMBER - 1, 10**40])
@pytest.mark.parametrize("form", ["{}", "[1, {}]", '{{"a": [{}]}}'])
def test_values_beyond_64_bits_are_mistakes(number, form):
    message, hint = find_value_mistake(form.format(number))
    assert message.startswith("is ")
    assert hint == "write a number of at most 9,223,372,036,854,775,807"


def test_values_and_their_parts_in_order():
    value = {"a": [1, {"b": "x"}], "c": None}
    assert list(parts_of(value)) == [value, [1, {"b": "x"}], 1, {"b": "x"}, "x", None]


@pytest.mark.parametrize(
    "raw, value",
    [
        ("True", True), ("None", None), ("words and more", "words and more"),
        ("${a.b}", "${a.b}"), ('"${a.b}/c"', '"${a.b}/c"'), ('["${a.b}"]', ["${a.b}"]),
    ],
)  # fmt: skip
def test_values_parse(raw, value):
    assert parse_value(raw) == value


@pytest.mark.parametrize(
    "given_value, value",
    [
        ("3", 3), ("0.5", 0.5), ("true", True), ("null", None), ("None", None),
        ("[1, 2]", [1, 2]), ("words", "words"), ('"3"', "3"), (3, 3),
        ("costs $5", "costs $$5"), ("${paths.dev}", "${paths.dev}"),
    ],
)  # fmt: skip
def test_values_of_overrides(given_value, value):
    assert read_override(given_value) == value
