"""Compiled kernels, one family per file; they need numba (``thincdialog[fast]``).

Nothing here is imported before it is used: ask ``compiled.load_kernels``.
"""
