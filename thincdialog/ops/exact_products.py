"""Matrix products whose rows do not depend on what else is in the batch."""

from contextlib import contextmanager
from typing import Any, Iterator

from thinc.api import Ops


class ExactProducts:
    """Part of our ops: while ``has_exact_products`` is set, ``gemm`` multiplies in double
    precision and rounds the result once.

    BLAS adds up a row's products in an order that depends on the row's place and on the
    number of rows, so that in single precision two replies that are equally good change
    places with the batch size. Costs about twice the time of a product.
    """

    has_exact_products = False
    xp: Any

    def gemm(
        self, x: Any, y: Any, out: Any = None, trans1: bool = False, trans2: bool = False
    ) -> Any:
        """Product of two matrices, either of them transposed if wanted; shape
        (rows of x, columns of y), float32."""
        if not self.has_exact_products or out is not None:
            return super().gemm(x, y, out=out, trans1=trans1, trans2=trans2)  # type: ignore[misc]
        left, right = x.astype("d"), y.astype("d")
        product = self.xp.dot(left.T if trans1 else left, right.T if trans2 else right)
        return product.astype("f")


@contextmanager
def exact_products(ops: Ops) -> Iterator[None]:
    """Let the products of our ops be exact for a while; stock ops stay as they are.

    ops (Ops): Those of the model.
    """
    if not isinstance(ops, ExactProducts):
        yield
        return
    before = ops.has_exact_products
    ops.has_exact_products = True
    try:
        yield
    finally:
        ops.has_exact_products = before
