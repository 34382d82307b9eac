"""The counts of several workers, which write into one folder."""

import os

from prometheus_client.mmap_dict import MmapedDict, mmap_key

from thincdialog.serving.metrics import FOLDER, Metrics


def test_a_worker_that_was_killed_and_one_that_begins(tmp_path, monkeypatch):
    monkeypatch.setenv(FOLDER, str(tmp_path))
    killed = 2**30
    for process in (killed, os.getpid()):
        for file, name in (("counter", "requests_total"), ("gauge_livesum", "waiting")):
            values = MmapedDict(str(tmp_path / f"{file}_{process}.db"))
            values.write_value(mmap_key(name, name, [], [], "About."), 3.0, 0.0)
            values.close()
    # A worker creates its file first and sets its size in a second call.
    (tmp_path / "counter_1.db").touch()
    lines = Metrics().text().decode().splitlines()
    assert "requests_total 6.0" in lines and "waiting 3.0" in lines
