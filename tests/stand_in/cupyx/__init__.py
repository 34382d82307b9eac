"""What of ``cupyx`` is needed, beside the stand-in for ``cupy``."""


def scatter_add(array, slices, value):
    array.scatter_add(slices, value)
