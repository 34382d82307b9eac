"""The few functions of ``cupyx`` that are needed with the stand-in for ``cupy``."""


def scatter_add(array, slices, value):
    array.scatter_add(slices, value)
