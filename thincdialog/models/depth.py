"""How many layers of a kind an encoder may have, one upon the other."""

# More train no better, and a mistyped number would take all memory.
MAX_LAYERS = 1000


def check_depth(depth: int, least: int) -> int:
    """The number of layers, if it is one.

    RAISES (ValueError): If it is smaller than ``least``, or larger than ``MAX_LAYERS``.
    """
    if not least <= depth <= MAX_LAYERS:
        raise ValueError(f"depth = {depth}, but it must be {least} to {MAX_LAYERS:,}")
    return depth
