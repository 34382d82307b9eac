"""The batcher contract: how many conversations go through an agent together."""


class Batcher:
    """Policy of a batching world; register one with ``registry.batchers``.

    A world keeps at most ``size`` conversations going and answers all of them in
    each parley.

    size (int): Conversations in a batch at most, 1 or more.
    """

    def __init__(self, size: int):
        self.size = size
