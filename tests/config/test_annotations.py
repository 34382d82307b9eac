import itertools
from typing import Any, Callable, Dict, FrozenSet, Iterator, List, Literal, Optional, Set, Tuple

import pytest
from confection.validation import PositiveInt
from thinc.api import Linear, Model
from thinc.types import Floats2d

from thincdialog.config.annotations import accepts_list, as_annotated, describe, element_type, fits


@pytest.mark.parametrize(
    "annotation, good, bad",
    [
        (int, [3], [3.0, True, "3", None]), (float, [3, 0.5], ["3"]), (bool, [True], [0]),
        (int | str, [3, "3"], [3.5]), (Optional[int], [None], [0.5]),
        (Optional[float], [0.5], ["0.5"]), (List[int], [[1, 2]], [["1"]]),
        (List[str], [["ab"]], ["ab"]), (Dict[str, float], [{"a": 1}], [{"a": "1"}]),
        (Optional[Literal["a", "b"]], ["a", None], ["c"]), (Any, [3], []),
        (Model[Floats2d, Floats2d], [Linear()], [3]), (Callable[..., Any], [len], [3]),
        (Tuple[int, int], [[1, 2]], [[1, 2, 3], "ab"]), (Tuple[int, ...], [[1, 2, 3]], [["1"]]),
        (Optional[Tuple[int, str]], [[1, "a"]], [[1, 2]]), (Set[int], [[1]], [["1"], [[1]]]),
        (List[Tuple[int, int]], [[[1, 2]]], [[[1]]]), (PositiveInt, [], [3]),
        (Iterator[int], [(n for n in itertools.count())], ["3"]),
    ],
)  # fmt: skip
def test_annotations_fit(annotation, good, bad):
    assert all(fits(value, annotation) for value in good)
    assert not any(fits(value, annotation) for value in bad)


@pytest.mark.parametrize(
    "value, annotation, expected",
    [
        ([1, 2], Tuple[int, int], (1, 2)), ([1, 2, 1], Optional[Set[int]], {1, 2}),
        ([1], FrozenSet[int], frozenset([1])), ([1, 2], tuple, (1, 2)),
        ([[1, "a"]], List[Tuple[int, str]], [(1, "a")]),
        ([[1, 2], [3]], Tuple[List[int], ...], ([1, 2], [3])),
        ({"a": [1, 2]}, Dict[str, Tuple[int, int]], {"a": (1, 2)}),
        ([1, 2], List[int] | Tuple[int, int], [1, 2]), ([1, 2], Any, [1, 2]),
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
        (str | List[str] | None, "a string or a list of strings or null"),
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
