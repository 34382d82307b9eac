"""A model folder is replaced whole or not at all."""

import pytest

from thincdialog.errors import OutputError
from thincdialog.runs.model_folder import save_model


class Learnt:
    """An agent whose state is one word; ``trouble`` is raised while it is written."""

    def __init__(self, word, trouble=None):
        self.word, self.trouble = word, trouble

    def to_disk(self, folder):
        (folder / "word.txt").write_text(self.word)
        if self.trouble is not None:
            raise self.trouble


def test_model_folder_keeps_the_old_model_if_the_new_one_fails(tmp_path):
    folder = tmp_path / "model-best"
    save_model(Learnt("old"), folder, "", {})
    with pytest.raises(OutputError, match="the disk may be full .*80 requested and 8 written"):
        save_model(Learnt("new", OSError("80 requested and 8 written")), folder, "", {})
    with pytest.raises(KeyboardInterrupt):
        save_model(Learnt("new", KeyboardInterrupt()), folder, "", {})
    assert (folder / "word.txt").read_text() == "old" and list(tmp_path.iterdir()) == [folder]


def test_model_folder_survives_an_interrupt_between_the_renames(tmp_path, monkeypatch):
    folder = tmp_path / "model-best"
    save_model(Learnt("old"), folder, "", {})
    rename = type(folder).rename
    calls = []

    def interrupted(path, target):
        calls.append(path)
        if len(calls) == 2:
            raise KeyboardInterrupt
        return rename(path, target)

    monkeypatch.setattr(type(folder), "rename", interrupted)
    with pytest.raises(KeyboardInterrupt):
        save_model(Learnt("new"), folder, "", {})
    assert (folder / "word.txt").read_text() == "old" and list(tmp_path.iterdir()) == [folder]
