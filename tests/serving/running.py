"""A server in a separate process."""

import re
import signal
import subprocess
import sys
from contextlib import contextmanager


class Server:
    """A process of ``serve``. Its address is ``url``."""

    def __init__(self, process, url):
        self.process, self.url = process, url

    def end(self, number=signal.SIGTERM, timeout=30):
        """Send a signal. Return the exit code and stderr."""
        self.process.send_signal(number)
        _, err = self.process.communicate(timeout=timeout)
        return self.process.returncode, err


@contextmanager
def serving(*words):
    """Serve on a free port, and kill all processes that are left at the end."""
    command = [sys.executable, "-m", "thincdialog", "serve", "--port", "0", *map(str, words)]
    process = subprocess.Popen(command, stderr=subprocess.PIPE, text=True)
    try:
        line = process.stderr.readline()
        found = re.search(r"Serving at (\S+) ", line)
        assert found, line + process.stderr.read()
        yield Server(process, found[1])
    finally:
        if process.poll() is None:
            process.terminate()
            try:
                process.communicate(timeout=20)
            except subprocess.TimeoutExpired:
                process.kill()
                process.communicate()
