"""The limits for the number of stacked layers of an encoder."""

# More layers train no better, and a mistyped number would use up the memory.
MAX_LAYERS = 1000


def check_depth(depth: int, least: int) -> int:
    """Return the number of layers if it is in range.

    RAISES (ValueError): If it is smaller than ``least``, or larger than ``MAX_LAYERS``.
    """
    if not least <= depth <= MAX_LAYERS:
        raise ValueError(f"depth = {depth}, but it must be {least} to {MAX_LAYERS:,}")
    return depth
