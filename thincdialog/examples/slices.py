"""Slices of an array, one after another."""

import numpy as np


def slice_places(starts: np.ndarray, lengths: np.ndarray) -> np.ndarray:
    """The places within slices, one slice after the other; int64.

    starts, lengths (np.ndarray): Of each slice, shape (n_slices,), int64.
    """
    ends = lengths.cumsum()
    places: np.ndarray = (starts - ends + lengths).repeat(lengths)
    places += np.arange(len(places))
    return places
