"""cupy.cuda.nccl: ranks are processes (or threads) that send data through files in a folder. The
unique id names the folder.

A rank does not continue before the others have received its data. If it waits for a rank that has
ended, it hangs, as with NCCL, until it aborts. Calls that do not match are an error, whereas NCCL
would hang or overwrite memory. CUPY_STAND_IN_NCCL = "0" in the environment: CuPy without NCCL.
"""

import ctypes
import os
import pickle
import shutil
import tempfile
import threading
import time
from collections import Counter
from contextlib import suppress
from pathlib import Path

import numpy as np

from ._counts import launched

available = os.environ.get("CUPY_STAND_IN_NCCL") != "0"
NCCL_INT32, NCCL_INT64, NCCL_FLOAT32, NCCL_FLOAT64, NCCL_SUM = 2, 4, 7, 8, 0
_KINDS = {NCCL_INT32: "i4", NCCL_INT64: "i8", NCCL_FLOAT32: "f4", NCCL_FLOAT64: "f8"}
_ERRORS = {
    3: "NCCL_ERROR_INTERNAL_ERROR: internal error",
    4: "NCCL_ERROR_INVALID_ARGUMENT: invalid argument",
    5: "NCCL_ERROR_INVALID_USAGE: invalid usage",
}
_ID_BYTES = 128
# Seconds; real NCCL would hang for ever.
_PATIENCE, _LOOK = 60.0, 0.0005
_LEFT_SECONDS = 3600
_group = threading.local()


class NcclError(RuntimeError):
    def __init__(self, status, text=""):
        super().__init__(f"{_ERRORS[status]} ({text})")
        self.status = status


def get_version():
    return 22703


get_build_version = get_version


def get_unique_id():
    place = Path(tempfile.gettempdir()) / f"cupy-stand-in-{os.getuid()}"
    place.mkdir(mode=0o700, exist_ok=True)
    for left in place.glob("nccl-*"):  # Files of ranks that were killed.
        with suppress(FileNotFoundError):
            if time.time() - left.stat().st_mtime > _LEFT_SECONDS:
                shutil.rmtree(left, ignore_errors=True)
    name = tempfile.mkdtemp(prefix="nccl-", dir=place).encode().ljust(_ID_BYTES, b"\0")
    return tuple(np.frombuffer(name, dtype="i1").tolist())


def groupStart():
    _group.depth = getattr(_group, "depth", 0) + 1
    if _group.depth == 1:
        _group.calls = []


def groupEnd():
    if not getattr(_group, "depth", 0):
        raise NcclError(5, "groupEnd without groupStart")
    _group.depth -= 1
    if not _group.depth:
        calls, _group.calls = _group.calls, []
        _carry_out(calls)


def _carry_out(calls):
    """Send the data of all calls, then receive the data that others have sent."""
    for comm, call in calls:
        comm._alive()
        call.send(comm)
    for comm, call in calls:
        call.take(comm)
    for comm in {id(comm): comm for comm, _ in calls}.values():
        comm._until_taken()


class _Call:
    """A call in a group.

    own, into (Optional[Tuple[int, int]]): Address and number of cells of the data to send, and of
        the memory to receive into.
    """

    def __init__(self, name, datatype, own=None, into=None, peer=None):
        if datatype not in _KINDS:
            raise NcclError(4, f"datatype {datatype}")
        for cells in (own, into):
            if cells is not None and not (isinstance(cells[0], int) and cells[0] and cells[1] > 0):
                raise NcclError(4, f"{name} of {cells[1]} cells at {cells[0]}")
        launched(f"nccl {name}")
        self.name, self.kind, self.own, self.into = name, np.dtype(_KINDS[datatype]), own, into
        self.peer = peer

    def _cells(self, address, n):
        return np.frombuffer((ctypes.c_char * (n * self.kind.itemsize)).from_address(address),
                             dtype=self.kind)  # fmt: skip

    def send(self, comm):
        to = {"send": [self.peer], "recv": []}.get(self.name, comm._others)
        if self.name == "broadcast" and self.peer != comm._rank:
            to = []
        for other in to:
            comm._put(self._channel(), other, (*self._told(), self._cells(*self.own).tobytes()))

    def take(self, comm):
        if self.name == "send" or (self.name == "broadcast" and self.peer == comm._rank):
            return
        point = {"recv": [self.peer], "broadcast": [self.peer]}
        found = {}
        for other in point.get(self.name, comm._others):
            *told, cells = comm._take(self._channel(), other)
            if tuple(told) != self._told():
                raise NcclError(5, f"{self._told()} meets {told}")
            found[other] = np.frombuffer(cells, dtype=self.kind)
        into = self._cells(*self.into)
        if self.name in point:
            into[:] = found[self.peer]
            return
        found[comm._rank] = self._cells(*self.own).copy()
        parts = [found[rank] for rank in range(comm._n)]
        into[:] = np.concatenate(parts) if self.name == "allGather" else sum(parts)

    def _channel(self):
        return "point" if self.name in ("send", "recv") else "all"

    def _told(self):
        n = (self.own or self.into)[1]
        name, peer = ("point", None) if self._channel() == "point" else (self.name, self.peer)
        return name, peer, self.kind.str, n


class NcclCommunicator:
    def __init__(self, ndev, commId, rank):
        from .cuda import physical_device

        if not isinstance(commId, tuple) or len(commId) != _ID_BYTES:
            raise AssertionError("commId")
        if not 0 <= rank < ndev:
            raise NcclError(4, f"rank {rank} of {ndev}")
        self._n, self._rank = ndev, rank
        self._others = [other for other in range(ndev) if other != rank]
        name = np.array(commId, dtype="i1").tobytes().rstrip(b"\0").decode()
        self._folder, self._counts, self._comm = Path(name), Counter(), 1
        self._put_file(f"rank-{rank}", physical_device())
        found = [self._get_file(f"rank-{other}", keep=True) for other in range(ndev)]
        if len(set(found)) < ndev:
            raise NcclError(5, f"Duplicate GPU detected: ranks are on {found}")

    # --- files --------------------------------------------------------------------------

    def _put_file(self, name, message):
        if (self._folder / name).exists():
            raise NcclError(5, f"{name} is there already")
        path = self._folder / f".{name}"
        try:
            path.write_bytes(pickle.dumps(message))
            path.rename(self._folder / name)
        except FileNotFoundError:  # Another rank has aborted, so this rank waits in vain.
            self._wait(lambda: False, name)

    def _get_file(self, name, keep=False):
        path = self._folder / name
        self._wait(path.exists, name)
        message = pickle.loads(path.read_bytes())
        if not keep:
            path.unlink()
        return message

    def _wait(self, is_true, what):
        until = time.monotonic() + _PATIENCE
        while not is_true():
            self._alive()
            if time.monotonic() > until:
                raise NcclError(3, f"rank {self._rank} hangs: {what}")
            time.sleep(_LOOK)

    def _alive(self):
        if not self._comm:
            raise NcclError(4, "it was aborted or destroyed")

    def _put(self, channel, other, message):
        self._counts[channel, self._rank, other] += 1
        name = f"{channel}-{self._rank}-{other}-{self._counts[channel, self._rank, other]}"
        self._put_file(name, message)
        self._sent = [*getattr(self, "_sent", ()), name]

    def _take(self, channel, other):
        self._counts[channel, other, self._rank] += 1
        n = self._counts[channel, other, self._rank]
        return self._get_file(f"{channel}-{other}-{self._rank}-{n}")

    def _until_taken(self):
        sent, self._sent = getattr(self, "_sent", ()), []
        for name in sent:
            is_there = (self._folder / name).exists
            self._wait(lambda is_there=is_there: not is_there(), name)
        # Data that was removed by another rank's abort has not been received.
        if not self._folder.is_dir():
            self._wait(lambda: False, "another has aborted")

    # --- the interface of CuPy -------------------------------------------------------------

    def size(self):
        self._alive()
        return self._n

    def rank_id(self):
        self._alive()
        return self._rank

    def abort(self):
        if self._comm:
            self._comm = 0
            shutil.rmtree(self._folder, ignore_errors=True)

    def destroy(self):
        if self._comm:
            self._comm = 0
            # Another rank has removed the folder, maybe just now.
            with suppress(FileNotFoundError):
                (self._folder / f"left-{self._rank}").touch()
                if len(list(self._folder.glob("left-*"))) == self._n:
                    shutil.rmtree(self._folder, ignore_errors=True)

    def __del__(self):
        if getattr(self, "_comm", 0):
            self.destroy()

    def _call(self, *call, **more):
        self._alive()
        call = _Call(*call, **more)
        if call.peer is not None and not 0 <= call.peer < self._n:
            raise NcclError(4, f"rank {call.peer} of {self._n}")
        if call.name in ("send", "recv") and call.peer == self._rank:
            raise NcclError(5, "a rank sends to itself")
        if getattr(_group, "depth", 0):
            _group.calls.append((self, call))
        else:
            _carry_out([(self, call)])

    def send(self, sendbuf, count, datatype, peer, stream):
        self._call("send", datatype, own=(sendbuf, count), peer=peer)

    def recv(self, recvbuf, count, datatype, peer, stream):
        self._call("recv", datatype, into=(recvbuf, count), peer=peer)

    def broadcast(self, sendbuff, recvbuff, count, datatype, root, stream):
        into = (recvbuff, count)
        self._call("broadcast", datatype, own=(sendbuff, count), into=into, peer=root)

    def allGather(self, sendbuf, recvbuf, count, datatype, stream):
        own, into = (sendbuf, count), (recvbuf, count * self._n)
        self._call("allGather", datatype, own=own, into=into)

    def allReduce(self, sendbuf, recvbuf, count, datatype, op, stream):
        if op != NCCL_SUM:
            raise NotImplementedError(op)
        self._call("allReduce", datatype, own=(sendbuf, count), into=(recvbuf, count))
