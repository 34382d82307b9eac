"""The batcher contract: how many conversations go through an agent together."""


class Batcher:
    """Policy of a batching world; register one with ``registry.batchers``.

    A world keeps at most ``size`` conversations going and answers all of them in
    each parley.

    size (int): Conversations in a batch at most, 1 or more.
    RAISES (ValueError): If size is less than 1.
    """

    def __init__(self, size: int):
        if size < 1:
            raise ValueError(f"size = {size}, but a batch holds 1 conversation or more")
        self.size = size
