"""Kernels for a GPU, in CUDA C++, each with the function that starts it."""
