import io

import pytest

from tests.training.examples import Terminal
from thincdialog.cli import output
from thincdialog.cli.output import Messages, coloured, has_colour, shorten, table


def test_output_has_colour_on_terminals_only(monkeypatch):
    monkeypatch.delenv("NO_COLOR", raising=False)
    monkeypatch.setenv("TERM", "xterm")
    assert has_colour(Terminal()) and not has_colour(io.StringIO())
    assert coloured("x", 31, Terminal()) == "\x1b[31mx\x1b[0m"
    monkeypatch.setenv("TERM", "dumb")
    assert not has_colour(Terminal())
    monkeypatch.setenv("TERM", "xterm")
    monkeypatch.setenv("NO_COLOR", "1")
    assert not has_colour(Terminal())
    terminal = Terminal()
    Messages(terminal).fail("bad")
    assert terminal.getvalue() == "✘ bad\n"


def test_output_messages_cut_long_lines():
    stream = io.StringIO()
    Messages(stream).fail(f"{'y' * 70_000}  file not found\nnext")
    shown = stream.getvalue()
    assert len(shown) < 5100 and shown.endswith("yyy  file not found\nnext\n")


@pytest.mark.parametrize("encoding, sign", [("utf-8", "✔"), ("ascii", "[+]")])
def test_output_signs_that_the_terminal_has(encoding, sign):
    stream = io.TextIOWrapper(io.BytesIO(), encoding=encoding)
    Messages(stream).good("done")
    assert stream.buffer.getvalue().decode(encoding) == f"{sign} done\n"


def test_output_table_lines_up_letters_of_double_width():
    text = table([["name", "n"], ["北京", "10"], ["é", "2"]])
    assert text.split("\n") == ["name   n", "----  --", "北京  10", "é      2"]
    assert table([["a", "b"], ["c", "d"]], n_left=2).split("\n")[2] == "c  d"


def test_output_shorten():
    assert shorten("a\nb\tc", 10) == "a\\nb\\tc"
    assert shorten("abcdefgh", 6) == "abc..." and shorten("abcdefgh", 0) == "abcdefgh"


def test_output_counts():
    assert [output.counted(n, "turn") for n in (0, 1, 2, 1200)] == [
        "0 turns", "1 turn", "2 turns", "1,200 turns",
    ]  # fmt: skip
    values = [("dev.examples", 1.0), ("tokens", 496.0), ("x/examples", 0.0), ("mine", 3.0)]
    assert [output.number_of(*pair) for pair in values] == ["1", "496", "0", "3"]
    values = [("accuracy", 1.0), ("loss", 2.5), ("loss", float("nan")), ("examples/x", 0.0)]
    assert [output.number_of(*pair) for pair in values] == ["1.0000", "2.5000", "nan", "0.0000"]
