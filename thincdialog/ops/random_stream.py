"""Where a training step's random draws come from: a pure function of its position."""

import numpy


def stream_seed(seed: int, step: int, microbatch: int) -> numpy.random.SeedSequence:
    """Entropy for the draws of one microbatch.

    Two positions never share a stream, and a position's draws are the same in any
    process, whatever was drawn before.

    seed (int): The run's seed, 0 or more.
    step (int): Number of the optimizer step, counted from 0.
    microbatch (int): Number of the microbatch within the step, counted from 0.
    RETURNS (SeedSequence): What the ops' generator is made of.
    """
    return numpy.random.SeedSequence((seed, step, microbatch))
