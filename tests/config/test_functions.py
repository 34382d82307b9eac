from typing import Any, List

import tests.config.examples  # noqa: F401 - registers functions
from thincdialog.api import registry
from thincdialog.config.functions import describe_function, locate


def annotations(function, name):
    registry.layers(name, func=function)
    arguments = describe_function("layers", name).arguments
    return {key: argument.annotation for key, argument in arguments.items()}


def test_functions_arguments_and_their_documentation():
    info = describe_function("layers", "test_config.Picky.v1")
    assert list(info.arguments)[:3] == ["width", "rate", "kind"]
    assert info.arguments["width"].annotation is int
    positional = [argument.name for argument in info.positional(dict.fromkeys(range(99)))]
    assert positional[:2] == ["width", "rate"] and "deep" not in positional
    assert info.variadic is None and not info.takes_any
    text = "width (int): Units of the layer, 1 or more; at most 100."
    assert [info.documentation(name) for name in ("width", "names")] == [text, ""]
    assert info.hint("width") == f"{text} ({info.where})"
    assert info.hint("names") == f"see {info.where}"
    assert info.where.startswith("tests/config/examples.py:")


def test_functions_have_a_file_and_a_line():
    linear = describe_function("layers", "Linear.v1").function
    assert locate(linear).startswith("thinc/layers/linear.py:")
    assert locate(len) == "builtins"


def test_functions_one_unknown_name_switches_off_no_other_check():
    def odd(n: int, x: "NoSuchName", y: "int" = 3):  # noqa: F821
        return n

    # As with "from __future__ import annotations", all annotations are strings.
    def strings(n: "int", x: "NoSuchName", y: "List[str]" = ()):  # noqa: F821
        return n

    assert annotations(odd, "test_functions.Odd.v1") == {"n": int, "x": Any, "y": int}
    found = annotations(strings, "test_functions.Strings.v1")
    assert found == {"n": int, "x": Any, "y": List[str]}


def test_functions_of_classes_and_with_any_arguments():
    class Box:
        def __init__(self, size: int = 3, **more: Any):
            self.size = size

    assert annotations(Box, "test_functions.Box.v1") == {"size": int}
    info = describe_function("layers", "test_functions.Box.v1")
    assert info.keywords == "more" and not info.takes_any


def test_functions_are_described_again_when_their_code_is_loaded_again():
    for kind in (int, str):
        space = {}
        exec(compile(f"def f(n: {kind.__name__}): pass", "my_code.py", "exec"), space)
        assert annotations(space["f"], "test_functions.Again.v1") == {"n": kind}
