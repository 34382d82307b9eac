"""The counter that is shown while a vocabulary is built."""

import io

from tests.training.examples import Terminal, quietly_train
from thincdialog.training.reading_bar import reading_bar


def test_reading_bar_counts_on_a_terminal_only():
    terminal = Terminal()
    with reading_bar(terminal) as progress:
        progress(1000)
        progress(1500)
    assert "Reading" in terminal.getvalue() and "texts" in terminal.getvalue()
    file = io.StringIO()
    with reading_bar(file) as progress:
        assert progress is None
    assert file.getvalue() == ""


def test_reading_bar_is_shown_while_a_model_is_initialized():
    terminal = Terminal()
    quietly_train(stderr=terminal, training__max_steps=1)
    assert terminal.getvalue().startswith("\rReading: ")
