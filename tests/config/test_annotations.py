import itertools
from typing import (
    Any,
    Callable,
    Dict,
    FrozenSet,
    Iterator,
    List,
    Literal,
    Optional,
    Set,
    Tuple,
    Union,
)  # fmt: skip

import pytest
from confection.validation import PositiveInt
from thinc.api import Model
from thinc.types import Floats2d

from thincdialog.config.annotations import accepts_list, as_annotated, describe, element_type, fits


@pytest.mark.parametrize(
    "value, annotation, expected",
    [
        (3, int, True), (3, float, True), (3.0, int, False), (True, int, False),
        (0, bool, False), ("3", int, False), ("3", Union[int, str], True),
        ("0.5", Optional[float], False), (["1"], List[int], False), ([1, 2], List[int], True),
        ("ab", List[str], False), ({"a": 1}, Dict[str, float], True),
        ({"a": "1"}, Dict[str, float], False), ("a", Literal["a", "b"], True),
        ("c", Optional[Literal["a", "b"]], False), (None, Optional[int], True),
        (None, int, False), (3, Model[Floats2d, Floats2d], False),
        (len, Callable[..., Any], True), (3, Any, True), ([1, 2], Tuple[int, int], True),
        ([1, 2, 3], Tuple[int, int], False), ([1, 2, 3], Tuple[int, ...], True),
        ([1, "a"], Optional[Tuple[int, str]], True), (["1"], Set[int], False),
        ([[1], [2]], Set[int], False), ([[1, 2]], List[Tuple[int, int]], True),
        ("ab", Tuple[str, str], False), (3, PositiveInt, False),
        ((n for n in itertools.count()), Iterator[int], True),
    ],
)  # fmt: skip
def test_annotations_fit(value, annotation, expected):
    assert fits(value, annotation) is expected


@pytest.mark.parametrize(
    "value, annotation, expected",
    [
        ([1, 2], Tuple[int, int], (1, 2)), ([1, 2, 1], Optional[Set[int]], {1, 2}),
        ([1], FrozenSet[int], frozenset([1])), ([1, 2], tuple, (1, 2)),
        ([[1, "a"]], List[Tuple[int, str]], [(1, "a")]),
        ([[1, 2], [3]], Tuple[List[int], ...], ([1, 2], [3])),
        ({"a": [1, 2]}, Dict[str, Tuple[int, int]], {"a": (1, 2)}),
        ([1, 2], Union[List[int], Tuple[int, int]], [1, 2]), ([1, 2], Any, [1, 2]),
        (None, Optional[Tuple[int, int]], None), ([], Tuple[int, ...], ()),
    ],
)  # fmt: skip
def test_annotations_lists_stand_for_what_json_lacks(value, annotation, expected):
    found = as_annotated(value, annotation)
    assert found == expected and type(found) is type(expected)


@pytest.mark.parametrize(
    "annotation, words",
    [
        (int, "an integer"), (Optional[float], "a number or null"),
        (Union[str, List[str], None], "a string or a list of strings or null"),
        (Literal["a", "b"], '"a" or "b"'), (Dict[str, int], "a section"),
        (Model[Floats2d, Floats2d], "a block that builds a Model"),
        (Callable[..., int], "a function"), (Iterator[int], "a block that builds a schedule"),
        (Tuple[int, int], "a list of 2 integers"),
        (Tuple[int, str], "a list of 2: an integer, a string"),
        (Optional[Tuple[str, ...]], "a list of strings or null"),
        (Set[float], "a list of numbers"), (tuple, "a list"),
    ],
)  # fmt: skip
def test_annotations_in_words(annotation, words):
    assert describe(annotation) == words


def test_annotations_of_lists():
    assert accepts_list(Optional[List[Model]]) and accepts_list(Any) and not accepts_list(int)
    assert element_type(Optional[List[int]]) is int
    assert element_type(Dict[str, float]) is float
    assert element_type(int) is Any
