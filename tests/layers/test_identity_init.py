import numpy
import pytest

from thincdialog.api import registry
from thincdialog.ops.choice import get_dialog_ops


@pytest.mark.parametrize("n_out,n_in", [(2, 2), (2, 4), (2, 5), (3, 2), (1, 3)])
def test_identity_init_adds_up_the_parts_of_the_input(n_out, n_in):
    init = registry.initializers.get("thincdialog.identity_init.v1")()
    W = init(get_dialog_ops(-1), (n_out, n_in))
    X = numpy.arange(1.0, n_in + 1, dtype="f")
    expected = [sum(X[at] for at in range(row, n_in, n_out)) for row in range(n_out)]
    assert (W @ X).tolist() == expected
    assert W.dtype == numpy.float32
