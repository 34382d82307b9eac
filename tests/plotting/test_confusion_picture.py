"""The picture of a confusion matrix: the names and counts that can be read in it."""

import re

import pytest

from tests.processes import slow
from thincdialog.messages import Message
from thincdialog.metrics.confusion import ConfusionMatrix
from thincdialog.plotting.confusion import N_SHOWN, draw_confusion

matplotlib = pytest.importorskip("matplotlib")


def texts_of(n_classes, path):
    """Return the texts in the picture of a matrix in which class 0 is confused with 1, 2 with 3,
    and so on. Later classes are confused more often."""
    matrix = ConfusionMatrix()
    for number in range(n_classes):
        other = number ^ 1 if number ^ 1 < n_classes else number
        replies = [number] * 500 + [other] * (number + 1)
        for reply in replies:
            matrix.add([f"class {number:03}"], Message(text=f"class {reply:03}"))
    with matplotlib.rc_context({"svg.fonttype": "none"}):
        draw_confusion(matrix, path)
    return re.findall(r"<text[^>]*font[^>]*?([0-9.]+)px[^>]*>([^<]+)</text>", path.read_text())


@pytest.mark.parametrize("n_classes", [2, slow(40), slow(80)])
def test_confusion_picture_names_all_classes_up_to_eighty(n_classes, tmp_path):
    texts = texts_of(n_classes, tmp_path / "m.svg")
    names = [text for _, text in texts if text.startswith("class ")]
    assert sorted(names) == sorted(2 * [f"class {number:03}" for number in range(n_classes)])
    assert min(float(size) for size, _ in texts) >= 8
    assert ("500" in [text for _, text in texts]) == (n_classes <= 40)


@pytest.mark.slow
def test_confusion_picture_of_more_classes_names_those_confused_most(tmp_path):
    texts = texts_of(150, tmp_path / "m.svg")
    shown = [text for _, text in texts]
    names = [text for text in shown if text.startswith("class ")]
    assert names == 2 * [f"class {number:03}" for number in range(150 - N_SHOWN, 150)]
    assert shown.count("(120 others)") == 2
    assert "the 30 of 150 classes that are confused most, the others combined" in shown
    # Each class in the picture is right 500 times. The 120 other classes are joined, with all their
    # errors.
    assert shown.count("500") == N_SHOWN
    assert str(120 * 500 + sum(range(1, 121))) in shown
    assert min(float(size) for size, _ in texts) >= 8


def test_confusion_picture_of_names_without_glyphs_warns_of_nothing(tmp_path, recwarn):
    matrix = ConfusionMatrix()
    for name in ("\N{FAMILY}", "a\tb"):
        matrix.add([name], Message(text=name))
    draw_confusion(matrix, tmp_path / "m.png")
    assert [each for each in recwarn if "Glyph" in str(each.message)] == []
