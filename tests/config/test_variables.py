import pytest
from confection import Config
from hypothesis import given
from hypothesis import strategies as st

from thincdialog.config.source import read_source
from thincdialog.config.values import parse_value
from thincdialog.config.variables import fill_variables, variables_in


def raw_data(text):
    data = {}
    for name, section in read_source(text).sections.items():
        node = data
        for part in name.split("."):
            node = node.setdefault(part, {})
        node.update({key: parse_value(entry.raw) for key, entry in section.entries.items()})
    return data


def fill(text):
    data, mistakes, unresolved = fill_variables(raw_data(text))
    assert mistakes == [] and unresolved == set()
    return data


@pytest.mark.parametrize(
    "text",
    [
        "[a]\nx = 3\n[b]\ny = ${a.x}\n",
        "[a]\nx = 3\n[b]\ny = ${a:x}\n",
        '[a]\nx = "d"\n[b]\ny = ${a.x}/f.txt\nz = "${a.x}/f ${a.x}"\n',
        '[a]\nx = 0.5\n[b]\ny = "${a.x}"\nz = 1${a.x}\n',
        "[a]\nx = [1, 2]\n[b]\ny = ${a.x}\n",
        "[a]\nx = 3\n[b]\ny = [${a.x}, 4]\n",
        '[a]\nx = "s"\n[b]\ny = ["${a.x}", 4]\n',
        "[a]\nx = 3\ny = ${x}\n",
        "[a]\nx = 3\n[b]\ny = ${c.z}\n[c]\nz = ${a.x}\n",
        "[a]\nx = 3\n[a.c]\nd = 4\n[b]\ny = ${a.c}\nz = ${a}\n",
        '[a]\n@f = "f.v1"\nx = 3\n[b]\ny = ${a}\n',
        '[a]\nx = "5$$"\n[b]\ny = 1$$\n',
        "[a]\nx = true\n[b]\ny = it is ${a.x}\n",
    ],
)
def test_variables_are_filled_in_as_confection_does(text):
    assert fill(text) == Config().from_str(text)


def test_variables_keep_quotes_and_backslashes():
    assert fill('[a]\nx = "say \\"hi\\""\n[b]\ny = "${a.x}!"\n')["b"]["y"] == 'say "hi"!'
    assert fill('[a]\nx = "c\\\\d"\n[b]\ny = ${a.x}/e\n')["b"]["y"] == "c\\d/e"


def test_variables_copy_sections():
    data = fill("[a]\nx = [1]\n[b]\ny = ${a}\n")
    assert data["b"]["y"] == data["a"]
    assert data["b"]["y"]["x"] is not data["a"]["x"]


@pytest.mark.parametrize(
    "text, path, words, hint",
    [
        ("[a]\nx = 1\n[b]\ny = ${a.z}\n", ("b", "y"), "refers to ${a.z}, which is not", "${a.x}"),
        ("[b]\ny = ${nothing}\n", ("b", "y"), "refers to ${nothing}", ""),
        ("[a]\nx = ${a.y}\ny = ${a.x}\n", ("a", "y"), "leads back to itself", ""),
        ("[a]\nx = ${a}\n", ("a", "x"), "leads back to itself", ""),
        ("[a]\nx = 5$\n", ("a", "x"), "holds a lone '$'", "write $$"),
        ("[a]\nx = ${}\n", ("a", "x"), "holds a lone '$'", "write $$"),
        ("[a]\nx = 1\n[b]\ny = in ${a}\n", ("b", "y"), "whole section ${a}", "a single value"),
        ('[a]\nx = 1\n[b]\ny = "${a}"\n', ("b", "y"), "whole section ${a}", "a single value"),
        ("[a]\nx = null\n[b]\ny = ${a.x}/f\n", ("b", "y"), "but that is null", "'a.x'"),
    ],
)
def test_variables_mistakes(text, path, words, hint):
    data, mistakes, unresolved = fill_variables(raw_data(text))
    assert [mistake.path for mistake in mistakes] == [path]
    assert words in mistakes[0].text and hint in mistakes[0].hint
    assert path in unresolved
    assert data[path[0]][path[1]] is None


def test_variables_unknown_value_makes_no_second_mistake():
    text = "[a]\nx = ${no.where}\n[b]\ny = ${a.x}\nz = ${a}\nw = 1\n"
    data, mistakes, unresolved = fill_variables(raw_data(text))
    assert len(mistakes) == 1
    assert unresolved == {("a", "x"), ("b", "y"), ("b", "z")}
    assert data["b"]["w"] == 1


def test_variables_in_finds_all_names():
    data = raw_data('[a]\nx = ${b.c}/${d:e}\ny = ["${f.g}", "$$"]\n[a.h]\ni = ${j}\n')
    assert list(variables_in(data)) == ["b.c", "d.e", "f.g", "j"]


names = st.sampled_from(["x", "y", "z"])
texts = st.sampled_from(["1", "2.5", "true", '"s t"', "[1, 2]", "word", '""'])


@given(st.dictionaries(names, texts, min_size=1), st.data())
def test_variables_agree_with_confection(values, data):
    keys = sorted(values)
    pieces = st.one_of(
        st.sampled_from(["/", "a", " b", "-"]),
        st.sampled_from(keys).map(lambda key: "${a.%s}" % key),
    )
    uses = data.draw(st.lists(st.lists(pieces, min_size=1, max_size=4), max_size=3))
    lines = ["[a]", *(f"{key} = {value}" for key, value in values.items()), "[b]"]
    for index, use in enumerate(uses):
        text = "".join(use).strip()
        lines.append(f"u{index} = {text}")
    text = "\n".join(lines) + "\n"
    assert fill(text) == Config().from_str(text)
