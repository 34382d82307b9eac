import itertools

import pytest
from confection import Config
from hypothesis import given
from hypothesis import strategies as st

from thincdialog.config.given import read_config
from thincdialog.config.source import read_source

GOOD = """# What it trains.
# How to run it.

[paths]
train = "a.jsonl"

# The agent.
[agent]
@agents = "x.v1"
# How wide.
width = 3
sizes = [1,
    2,

    3]
name: plain words

[agent.model]
  depth = 2
  width = 3
"""


def data_of(text):
    read = read_config(text)
    assert read.problems == []
    return read.written


def test_source_remembers_lines_and_comments():
    source = read_source(GOOD, "my.cfg")
    assert source.problems == []
    assert source.header == ["# What it trains.", "# How to run it."]
    assert source.sections["agent"].comments == ["# The agent."]
    assert source.sections["agent"].line == 8
    entries = source.sections["agent"].entries
    lines = {key: entry.line for key, entry in entries.items()}
    assert lines == {"@agents": 9, "width": 11, "sizes": 12, "name": 16}
    assert entries["width"].comments == ["# How wide."]
    assert read_config(GOOD).where("agent", "model", "depth") == "config:19"
    assert read_config(GOOD).where("agent", "model", "missing") == "config:18"


def test_source_reads_what_confection_reads():
    assert data_of(GOOD) == Config().from_str(GOOD, interpolate=False)
    assert data_of(GOOD)["agent"]["sizes"] == [1, 2, 3]


@pytest.mark.parametrize(
    "text, line, words",
    [
        ("[a]\njust words\n", 2, "'just words' is neither a [section] nor 'key = value'"),
        ("[]\nx = 1\n", 1, "'[]' is not a section name"),
        ("[a..b]\nx = 1\n", 1, "'[a..b]' is not a section name"),
        ("[a]\nx =\n", 2, "[a] 'x' has no value - write null"),
        ('[a]\nx = "b" ; one\n', 2, "a comment needs a line of its own"),
        ("[a]\nx = +3\n", 2, "write 3"),
        ("[a]\nx = [1, Infinity]\n", 2, "write a finite number"),
        ('[a]\nx = ["\\u0000"]\n', 2, "holds a NUL character - remove it"),
        ("[a]\nx = b\n  [a.c]\n", 2, "an indented line continues the value above it"),
        ("[a]\nx = [1, 2\n", 2, "which is not JSON"),
        ("[a]\nx = {1: 2}\n", 2, "which is not JSON"),
    ],
)
def test_source_names_line_and_remedy(text, line, words):
    problems = read_source(text, "c.cfg").problems
    assert [problem.where for problem in problems] == [f"c.cfg:{line}"]
    assert words in str(problems[0])


def test_source_finds_all_mistakes_and_keeps_the_first_of_repeated_ones():
    source = read_source("[a]\nx = 1\nx = .5\n[a]\ny = 'b'\n[b]\nnothing\n")
    places = [problem.where for problem in source.problems]
    assert places == ["config:3", "config:4", "config:5", "config:7"]
    assert source.sections["a"].entries["x"].raw == "1"
    assert "y" not in source.sections["a"].entries


def test_source_allows_hash_inside_strings():
    assert data_of('[a]\nx = "1 # one"\ny = #tag\n') == {"a": {"x": "1 # one", "y": "#tag"}}


def test_source_value_and_section_of_one_name():
    (problem,) = read_config("[a]\nb = 1\n\n[a.b]\nc = 2\n").problems
    wanted = "[a] 'b' is both a value and a section - see [a.b] at config:4: keep one"
    assert str(problem) == f"config:2  {wanted}"


names = st.from_regex(r"[a-z_][a-z0-9_]{0,5}", fullmatch=True)
plain = st.from_regex(r"[A-Za-z/][A-Za-z0-9/ _-]{0,8}[a-z]", fullmatch=True)
# Values that are not finite are refused here (see above), but not by confection.
plain = plain.filter(lambda text: text.lower() not in ("inf", "infinity", "nan"))
json_texts = st.sampled_from(["1", "-2.5", "1e3", "true", "null", '"a b"', '[1, "x"]', "None"])
sections = st.dictionaries(names, json_texts | plain, max_size=4)
spaces = st.sampled_from(["", "\n", "# words\n", "\n; words = 1\n\n"])


@given(
    st.dictionaries(names, sections, max_size=4),
    st.lists(spaces, min_size=1, max_size=8),
    st.sampled_from([" = ", "=", ": "]),
)
def test_source_agrees_with_confection(content, gaps, equals):
    gap = itertools.cycle(gaps)
    text = ""
    for name, entries in content.items():
        text += f"{next(gap)}[{name}]\n"
        text += "".join(f"{next(gap)}{key}{equals}{value}\n" for key, value in entries.items())
    assert data_of(text or "\n") == Config().from_str(text, interpolate=False)
