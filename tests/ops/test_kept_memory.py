import platform
import subprocess
import sys

import pytest

CODE = """
import resource
import numpy as np
from thincdialog.ops.dialog_ops import keep_memory

def faults(n):
    before = resource.getrusage(resource.RUSAGE_SELF).ru_minflt
    for _ in range(n):
        np.ones(1 << 18, dtype="f")
    return resource.getrusage(resource.RUSAGE_SELF).ru_minflt - before

assert keep_memory() and keep_memory()
faults(10)
print(faults(100))
"""


@pytest.mark.slow
@pytest.mark.skipif(platform.libc_ver()[0] != "glibc", reason="of glibc")
def test_kept_memory_is_not_fetched_page_by_page_again(root):
    # In a separate process, because the setting applies to the whole process.
    done = subprocess.run(
        [sys.executable, "-c", CODE], cwd=root, capture_output=True, text=True, timeout=60
    )
    assert done.returncode == 0, done.stderr
    # 100 arrays of 256 pages.
    assert int(done.stdout) < 2560
