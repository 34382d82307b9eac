"""What numbers may be given to registered functions that do not check them themselves:
Thinc's optimizers train with a negative learning rate, and its layers with no width end in an
error of NumPy's."""

from typing import Any, Callable, Dict, NamedTuple, Tuple

from .functions import FunctionInfo


class Range(NamedTuple):
    """Numbers that make sense.

    holds (Callable): Whether a number is one of them.
    words (str): Which they are.
    """

    holds: Callable[[float], bool]
    words: str


_SIZE = Range(lambda number: number >= 1, "1 or more")
_NOT_NEGATIVE = Range(lambda number: number >= 0, "0 or more")
_DECAY = Range(lambda number: 0 <= number < 1, "0 or more, less than 1")

# By registry and argument.
RANGES: Dict[Tuple[str, str], Range] = {
    **{("optimizers", name): _NOT_NEGATIVE for name in ("learn_rate", "L2", "eps", "grad_clip")},
    **{("optimizers", name): _DECAY for name in ("beta1", "beta2")},
    **{
        (kind, name): _SIZE
        for kind in ("layers", "models")
        for name in ("width", "hidden_width", "nO", "nI", "nP", "nV", "nF", "nH")
    },
}
# A function of the user's knows what it means by an argument.
_KNOWN = ("thinc.", "thincdialog.")


def out_of_range(info: FunctionInfo, argument: str, value: Any) -> str:
    """What a value of an argument should be, in words; "" if it is so.

    value (Any): Of the right type.
    """
    found = RANGES.get((info.registry, argument))
    module = getattr(info.function, "__module__", None) or ""
    if found is None or not module.startswith(_KNOWN):
        return ""
    if isinstance(value, list):
        is_good = bool(value) and all(map(found.holds, value))
        return "" if is_good else f"a list of one number or more, each {found.words}"
    return "" if value is None or isinstance(value, dict) or found.holds(value) else found.words
