"""Compiled kernels, one family per file. They need numba (``thincdialog[fast]``).

Do not import these modules directly, because numba is optional: use ``compiled.load_kernels``.
"""
