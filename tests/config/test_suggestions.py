from typing import List, Literal, Optional, Union

import pytest

from thincdialog.config.suggestions import close_functions, close_to, value_hint

NAMES = ["thincdialog.Ranker.v1", "thincdialog.Classifier.v1", "Adam.v1", "RAdam.v1"]


def test_suggestions_of_functions():
    for name in ("thincdialog.Rancer.v1", "Ranker", "ranker.v2"):
        assert close_functions(name, NAMES) == ["thincdialog.Ranker.v1"]
    assert close_functions("thincdialog.Adam.v1", NAMES) == ["Adam.v1"]
    # Parts that all names have in common do not make names similar.
    assert close_functions("thincdialog.Transformer.v1", NAMES) == []


def test_suggestions_of_settings():
    assert close_to("MAX_STEP", ["max_steps", "max_epochs"]) == "did you mean 'max_steps'?"
    assert close_to("zzz", ["a", "b"]) == "it has: a, b"
    assert close_to("zzz", []) == close_to("zzz", [f"{n}" for n in range(99)]) == ""


@pytest.mark.parametrize(
    "value, annotation, hint",
    [
        ("3", int, "write it without quotes"), ("3", Optional[float], "write it without quotes"),
        (".5", float, "write 0.5"), ("1_000", int, "write 1000"), (1000.0, int, "write 1000"),
        ("0.5", int, ""), ("inf", float, ""), ("yes", bool, "write true or false"),
        ("abc", int, ""), (True, str, ""),
        (3, str, """write "3", in quotes (on a command line: '"3"')"""),
        ("up", Literal["max", "min"], ""),
        ("3", Union[List[int], None], ""),
    ],
)  # fmt: skip
def test_suggestions_of_values(value, annotation, hint):
    assert value_hint(value, annotation) == hint
