"""CUDA C++ kernels for a GPU, and the functions that launch them."""
