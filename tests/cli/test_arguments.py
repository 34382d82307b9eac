import argparse

import pytest

from thincdialog.cli.arguments import argument, count, declare


@pytest.mark.parametrize(
    "usage, line, value",
    [
        ("CONFIG", "x", "x"),
        ("[MODEL]", "", None),
        ("RUN...", "x y", ["x", "y"]),
        ("-F --force", "-F", True),
        ("--force", "", False),
        ("-o --output FOLDER", "--output x", "x"),
        ("--json [FILE]", "--json", "-"),
        ("--json [FILE]", "--json x", "x"),
    ],
)
def test_arguments_are_read_as_their_help_shows_them(usage, line, value):
    parser = argparse.ArgumentParser()
    settings = {"const": "-"} if usage == "--json [FILE]" else {}
    declare(parser, [argument(usage, "What it is.", **settings)])
    assert list(vars(parser.parse_args(line.split())).values()) == [value]
    assert all(word.strip("[].") in parser.format_help() for word in usage.split())


def test_arguments_in_a_list_exclude_each_other(capsys):
    parser = argparse.ArgumentParser()
    declare(parser, [[argument("--csv", "a"), argument("--n N", "b", count, 3)]])
    assert parser.parse_args([]).n == 3
    with pytest.raises(SystemExit):
        parser.parse_args(["--csv", "--n", "1"])
    assert "--n: not allowed with argument --csv" in capsys.readouterr().err
