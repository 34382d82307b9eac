"""Random draws of the order of the data: pure functions of the seed and the epoch."""

import numpy as np

# Independent streams of random draws.
SHUFFLE, SAMPLE, WINDOW, SHARE = 0, 1, 2, 3


def block_order(n_episodes: int, seed: int, epoch: int, block: int, again: int = 0) -> np.ndarray:
    """Draw the training order of one block of episodes.

    n_episodes (int): Episodes in the block.
    seed (int): The run's seed.
    epoch (int): Epoch, counted from 0.
    block (int): Number of the block in file order, counted from 0.
    again (int): Number of times that the whole data was already shown within the epoch.
    RETURNS (np.ndarray): A permutation of 0 .. n_episodes - 1, int64.
    """
    return _generator(SHUFFLE, seed, epoch, block, again).permutation(n_episodes)


def in_share(n_episodes: int, place: int, n_workers: int, seed: int, block: int) -> np.ndarray:
    """Draw the episodes of a block that are in a worker's share.

    The share is the same in every epoch, so that a worker can reuse the data that it cached about
    its episodes. It is drawn at random, so that data with a pattern (such as two speakers in turn)
    is shared evenly. The numbers of episodes of two workers differ by one at most.

    n_episodes (int): Episodes in the block.
    place (int): Number of the worker, from 0; the first workers get one of the remaining
        episodes each.
    n_workers (int): Number of workers that share the data.
    seed (int): The run's seed.
    block (int): Number of the block in file order, counted from 0.
    RETURNS (np.ndarray): Whether each episode is in the share; shape (n_episodes,), bool.
    """
    drawn = _generator(SHARE, seed, 0, block).permutation(n_episodes)
    is_in = np.zeros(n_episodes, dtype=bool)
    is_in[drawn[place::n_workers]] = True
    return is_in


def window_generator(seed: int, epoch: int, window: int) -> np.random.Generator:
    """Make the generator for the draws of one window of rows that is cut into batches.

    seed (int): The run's seed.
    epoch (int): Epoch, counted from 0.
    window (int): Number of the window in the epoch, counted from 0.
    """
    return _generator(WINDOW, seed, epoch, window)


def sample_episodes(lengths: np.ndarray, max_examples: int, seed: int) -> np.ndarray:
    """Draw whole episodes until they hold enough examples.

    lengths (np.ndarray): Number of examples of each episode of the split, int64.
    max_examples (int): Wanted number of examples, 1 or more. The last drawn episode may exceed
        this number.
    seed (int): Seed of the sample.
    RETURNS (np.ndarray): Numbers of the drawn episodes in file order, int64.
    """
    order = _generator(SAMPLE, seed, 0, 0).permutation(len(lengths))
    totals = np.cumsum(lengths[order])
    n_taken = int(np.searchsorted(totals, max_examples)) + 1
    return np.sort(order[:n_taken])


def _generator(
    stream: int, seed: int, epoch: int, number: int, again: int = 0
) -> np.random.Generator:
    # NumPy's SeedSequence takes no negative numbers, but the seed of a config may be negative.
    words = [stream, seed & 0xFFFFFFFFFFFFFFFF, epoch, number]
    if again:
        words.append(again)
    return np.random.Generator(np.random.PCG64(np.random.SeedSequence(words)))
