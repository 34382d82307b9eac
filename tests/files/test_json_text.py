"""JSON reads as the standard library reads it, and values nested too deep are refused."""

import json

import pytest
from hypothesis import given
from hypothesis import strategies as st

from thincdialog.files.json_text import MAX_NESTED, parse_json

VALUES = st.recursive(
    st.none() | st.booleans() | st.integers() | st.floats(allow_nan=False) | st.text(),
    lambda inner: st.lists(inner) | st.dictionaries(st.text(), inner),
)


@given(VALUES)
def test_json_text_reads_as_json_does(value):
    text = json.dumps(value)
    assert parse_json(text) == parse_json(text.encode()) == value


@pytest.mark.parametrize("left, right", [("[", "]"), ('{"a":', "}"), ('[{"\\u0061":', "}]")])
def test_json_text_nested_too_deep_is_refused(left, right):
    n = MAX_NESTED // left.count("[" if "[" in left else "{")
    n = n // 2 if left.startswith("[{") else n
    parse_json(left * n + "1" + right * n)
    for more in (1, 700, 100_000):
        with pytest.raises(ValueError, match="nested more than 200 deep"):
            parse_json(left * (n + more) + "1" + right * (n + more))


@pytest.mark.parametrize("text", ['{"a": 1, "b": 2, "a": 3}', '[{"b": {"a": 1, "\\u0061": 1}}]'])
def test_json_text_with_a_key_twice_is_refused(text):
    with pytest.raises(ValueError, match="an object has 'a' twice"):
        parse_json(text)
