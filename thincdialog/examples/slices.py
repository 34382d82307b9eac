"""Select several slices of an array at once."""

import numpy as np


def slice_places(starts: np.ndarray, lengths: np.ndarray) -> np.ndarray:
    """Return the indices of all elements of some slices, one slice after the other; int64.

    starts, lengths (np.ndarray): Start and length of each slice, shape (n_slices,), int64.
    """
    ends = lengths.cumsum()
    places: np.ndarray = (starts - ends + lengths).repeat(lengths)
    places += np.arange(len(places))
    return places
