"""Where a mutator's random draws come from."""

import random

from ..messages import Message


def random_of(message: Message, seed: int) -> random.Random:
    """Draws that are the same whenever and wherever the message is read.

    message (Message): Its `id` seeds the draws.
    seed (int): The mutator's own seed.
    """
    # From a string, Python seeds by SHA-512: the same in every process and version.
    return random.Random(f"{seed}/{message.get('id', '')}")
