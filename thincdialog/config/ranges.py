"""What numbers may be given to registered functions that do not check them themselves:
Thinc's optimizers train with a negative learning rate, and its layers with no width end in an
error of NumPy's."""

import math
from typing import Any, Dict, Tuple

from .functions import FunctionInfo

# The least number that makes sense, the limit below which all must be, and both in words.
_SIZE = (1, math.inf, "1 or more")
_NOT_NEGATIVE = (0, math.inf, "0 or more")
_DECAY = (0, 1, "0 or more, less than 1")

# By registry and argument.
RANGES: Dict[Tuple[str, str], Tuple[float, float, str]] = {
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
    if not found or not module.startswith(_KNOWN) or value is None or isinstance(value, dict):
        return ""
    least, limit, words = found
    numbers = value if isinstance(value, list) else [value]
    are_good = [isinstance(each, (int, float)) and least <= each < limit for each in numbers]
    if are_good and all(are_good):
        return ""
    return f"a list of one number or more, each {words}" if isinstance(value, list) else words
