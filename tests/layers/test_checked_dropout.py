import pytest

from thincdialog.api import registry


@pytest.mark.parametrize("rate", [-0.1, 1.0, 2.0])
@pytest.mark.parametrize("name", ["BagEncoder", "CNNEncoder", "BiLSTMEncoder", "MemoryReader"])
def test_checked_dropout_refuses_rates_that_leave_nothing(name, rate):
    build = registry.models.get(f"thincdialog.{name}.v1")
    with pytest.raises(ValueError, match=f"dropout = {rate}.*below 1"):
        build(dropout=rate)
