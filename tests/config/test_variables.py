import pytest
from confection import Config

from thincdialog.config.given import read_config
from thincdialog.config.variables import fill_variables, variables_in


def fill(text, *problems):
    """Return the data, and check that the values for the given problems are unknown."""
    config = read_config(text)
    data = fill_variables(config, config.written)
    assert len(config.problems) == len(problems)
    for problem, words in zip(config.problems, problems):
        assert all(part in str(problem) for part in words.split("|")), str(problem)
    return data, config.unknown


AS_CONFECTION_DOES = [
    "[a]\nx = 3\n[b]\ny = ${a.x}\n", "[a]\nx = 3\n[b]\ny = ${a:x}\n",
    '[a]\nx = "d"\n[b]\ny = ${a.x}/f.txt\nz = "${a.x}/f ${a.x}"\n',
    '[a]\nx = 0.5\n[b]\ny = "${a.x}"\nz = 1${a.x}\n', "[a]\nx = [1, 2]\n[b]\ny = ${a.x}\n",
    "[a]\nx = 3\n[b]\ny = [${a.x}, 4]\n", '[a]\nx = "s"\n[b]\ny = ["${a.x}", 4]\n',
    "[a]\nx = 3\ny = ${x}\n", "[a]\nx = 3\n[b]\ny = ${c.z}\n[c]\nz = ${a.x}\n",
    "[a]\nx = 3\n[a.c]\nd = 4\n[b]\ny = ${a.c}\nz = ${a}\n",
    '[a]\n@f = "f.v1"\nx = 3\n[b]\ny = ${a}\n', '[a]\nx = "5$$"\n[b]\ny = 1$$\n',
    "[a]\nx = true\n[b]\ny = it is ${a.x}\n",
    '[a]\nx = word\ny = ""\n[b]\ny = /${a.x}-${a.x}a b${a.y}\nz = ${a.y}${a.y}\n',
    '[a]\nx = [1, 2]\ny = "s t"\n[b]\ny = ${a.x}${a.y}\nz = - ${a.y}/${a.x}\n',
]  # fmt: skip


@pytest.mark.parametrize("text", AS_CONFECTION_DOES)
def test_variables_are_filled_in_as_confection_does(text):
    assert fill(text) == (Config().from_str(text), set())


def test_variables_keep_quotes_and_backslashes():
    assert fill('[a]\nx = "say \\"hi\\""\n[b]\ny = "${a.x}!"\n')[0]["b"]["y"] == 'say "hi"!'
    assert fill('[a]\nx = "c\\\\d"\n[b]\ny = ${a.x}/e\n')[0]["b"]["y"] == "c\\d/e"


def test_variables_copy_sections():
    data, _ = fill("[a]\nx = [1]\n[b]\ny = ${a}\n")
    assert data["b"]["y"] == data["a"]
    assert data["b"]["y"]["x"] is not data["a"]["x"]


@pytest.mark.parametrize(
    "text, path, words",
    [
        ("[a]\nx = 1\n[b]\ny = ${a.z}\n", "b y", "[b] 'y' refers to ${a.z}, which is not|${a.x}"),
        ("[a]\nx = ${a.y}\ny = ${a.x}\n", "a y", "'y' refers to ${a.x}, which leads back to it"),
        ("[a]\nx = ${a}\n", "a x", "leads back to itself"),
        ("[a]\nx = ${}\n", "a x", "holds a lone '$'|write $$"),
        ("[a]\nx = 1\n[b]\ny = in ${a}\n", "b y", "whole section ${a}|a single value"),
        ("[a]\nx = null\n[b]\ny = ${a.x}/f\n", "b y", "[b] 'y' puts ${a.x}|but that is null|'a.x'"),
    ],
)
def test_variables_mistakes(text, path, words):
    data, unknown = fill(text, words)
    section, key = path.split()
    assert (section, key) in unknown and data[section][key] is None


def test_variables_unknown_value_makes_no_second_mistake():
    data, unknown = fill("[a]\nx = ${no.where}\n[b]\ny = ${a.x}\nz = ${a}\nw = 1\n", "no.where")
    assert unknown == {("a", "x"), ("b", "y"), ("b", "z")}
    assert data["b"]["w"] == 1


def test_variables_in_finds_all_names():
    config = read_config('[a]\nx = ${b.c}/${d:e}\ny = ["${f.g}", "$$"]\n[a.h]\ni = ${j}\n')
    assert list(variables_in(config.written)) == ["b.c", "d.e", "f.g", "j"]
