import numpy
from thinc.api import SGD, Adam

from thincdialog.ops.choice import get_dialog_ops
from thincdialog.optimizers.adam import AdamByOps
from thincdialog.optimizers.lazy_adam import LazyAdam
from thincdialog.optimizers.shared_state import for_a_worker, lay_out_state
from thincdialog.optimizers.state import ARRAYS, SETTINGS

KEY = (0, "W")
OPS = get_dialog_ops()


def test_a_workers_optimizer_knows_that_it_is_not_alone():
    assert isinstance(for_a_worker(Adam(0.1), OPS), AdamByOps)
    assert for_a_worker(LazyAdam(0.1), OPS).is_shared and not LazyAdam(0.1).is_shared


def test_a_workers_optimizer_has_the_same_settings_and_arrays_but_its_own_counts():
    for optimizer in (Adam(0.1, L2=0.2, grad_clip=0.3), SGD(0.1), LazyAdam(0.1, beta1=0.5)):
        optimizer.nr_update[KEY] = 7
        arrays = lay_out_state(optimizer, KEY, numpy.zeros(3, "f"))
        twin = for_a_worker(optimizer, OPS)
        for name in SETTINGS:
            assert getattr(twin, name) == getattr(optimizer, name)
        assert set(arrays) == {name for name in ARRAYS if getattr(twin, name)}
        for name, array in arrays.items():
            assert getattr(twin, name)[KEY] is array
        assert not twin.nr_update and twin.schedules == {}
