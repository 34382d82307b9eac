from typing import Any, Callable, Dict, List, Literal, Optional, Union

import pytest
from thinc.api import Model
from thinc.types import Floats2d

import tests.config.examples  # noqa: F401 - registers functions
from thincdialog.api import registry
from thincdialog.config.annotations import accepts_list, describe, element_type, fits
from thincdialog.config.functions import describe_function, locate


def test_functions_arguments_and_their_documentation():
    info = describe_function("layers", "test_config.Picky.v1")
    assert list(info.arguments)[:3] == ["width", "rate", "kind"]
    assert info.arguments["width"].annotation is int
    assert info.arguments["deep"].is_positional is False
    assert info.variadic is None and not info.takes_any
    text = "width (int): Units of the layer, 1 or more; at most 100."
    assert info.documentation("width") == text
    assert info.documentation("names") == ""
    assert info.hint("width") == f"{text} ({info.where})"
    assert info.hint("names") == f"see {info.where}"
    assert info.where.startswith("tests/config/examples.py:")


def test_functions_where_they_stand():
    assert locate(describe_function("layers", "Linear.v1").function).startswith(
        "thinc/layers/linear.py:"
    )
    assert locate(len) == "builtins"


def test_functions_one_unknown_name_switches_off_no_other_check():
    @registry.layers("test_functions.Odd.v1")
    def odd(n: int, x: "NoSuchName", y: "int" = 3):  # noqa: F821
        return n

    arguments = describe_function("layers", "test_functions.Odd.v1").arguments
    assert arguments["n"].annotation is int
    assert arguments["x"].annotation is Any


def test_functions_of_classes_and_with_any_arguments():
    @registry.layers("test_functions.Box.v1")
    class Box:
        def __init__(self, size: int = 3, **more: Any):
            self.size = size

    info = describe_function("layers", "test_functions.Box.v1")
    assert list(info.arguments) == ["size"] and info.takes_any
    assert info.arguments["size"].annotation is int


@pytest.mark.parametrize(
    "value, annotation, expected",
    [
        (3, int, True),
        (3, float, True),
        (3.0, int, False),
        (True, int, False),
        (0, bool, False),
        ("3", int, False),
        ("3", Union[int, str], True),
        ("0.5", Optional[float], False),
        (["1"], List[int], False),
        ([1, 2], List[int], True),
        ("ab", List[str], False),
        ({"a": 1}, Dict[str, float], True),
        ({"a": "1"}, Dict[str, float], False),
        ("a", Literal["a", "b"], True),
        ("c", Optional[Literal["a", "b"]], False),
        (None, Optional[int], True),
        (None, int, False),
        (3, Model[Floats2d, Floats2d], False),
        (len, Callable[..., Any], True),
        (3, Any, True),
    ],
)
def test_annotations_fit(value, annotation, expected):
    assert fits(value, annotation) is expected


@pytest.mark.parametrize(
    "annotation, words",
    [
        (int, "an integer"),
        (Optional[float], "a number or null"),
        (Union[str, List[str], None], "a string or a list of strings or null"),
        (Literal["a", "b"], '"a" or "b"'),
        (Dict[str, int], "a section"),
        (Model[Floats2d, Floats2d], "a block that builds a Model"),
        (Callable[..., int], "a function"),
    ],
)
def test_annotations_in_words(annotation, words):
    assert describe(annotation) == words


def test_annotations_of_lists():
    assert accepts_list(Optional[List[Model]]) and accepts_list(Any) and not accepts_list(int)
    assert element_type(Optional[List[int]]) is int
    assert element_type(Dict[str, float]) is float
    assert element_type(int) is Any
