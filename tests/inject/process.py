"""A program that a scenario starts, and how it must end. For inject.py."""
import itertools
import os
import re
import signal
import subprocess
import time

LIMIT_S = 20  # on an idle machine
number = itertools.count(1)
running = {}  # by folder: the processes that were started there


def end_all(folder):
    """Ends the processes that a scenario has left in its folder, with those that they started."""
    for process in running.pop(folder, []):
        if process.poll() is None:
            os.killpg(process.pid, signal.SIGKILL)
            process.wait()


def slowness():
    """By how many seconds limits are longer now: one for every two milliseconds that a program takes
    to start, at most 20, and 0 on an idle machine, as in the labs."""
    begin = time.monotonic()
    for _ in range(10):
        subprocess.run(["/bin/true"], check=True)
    return min(20, int((time.monotonic() - begin) * 1000 / 10 / 2))


class Wrong(Exception):
    """A program did what it must not."""


class Process:
    """A program with its output in files, under the preloaded library if `fault` is set."""

    def __init__(self, folder, command, fault=None):
        environment = dict(os.environ, BANYAN_TIMEOUT="2", BANYAN_TRANSPORT="udp", ASAN_OPTIONS="detect_leaks=0")
        if fault:
            environment.update(fault)
        self.path = os.path.join(folder, "out%d" % next(number))
        with open(self.path, "w") as out:
            self.process = subprocess.Popen(command, stdout=out, stderr=out, stdin=subprocess.DEVNULL,
                                            env=environment, cwd=folder, start_new_session=True)
        running.setdefault(folder, []).append(self.process)

    def text(self):
        with open(self.path, errors="replace") as file:
            return file.read()

    def until(self, words):
        """Waits for the words, or the end. Returns whether the words were printed."""
        begin, limit = time.monotonic(), 0
        while not re.search(words, self.text()):
            if self.process.poll() is not None:
                return bool(re.search(words, self.text()))
            if time.monotonic() - begin > LIMIT_S / 2 + limit:
                if limit > 0 or not (limit := slowness()):
                    return False
            time.sleep(0.005)
        return True

    def wait(self, seconds):
        """Returns the exit status, or None if it has not ended after these seconds."""
        try:
            return self.process.wait(seconds)
        except subprocess.TimeoutExpired:
            return None

    def end(self, stop=False):
        """Waits for the end, after SIGTERM if `stop`. Returns the exit status, which must be sound."""
        stop = stop and self.process.poll() is None
        if stop:
            self.process.terminate()
        status = self.wait(LIMIT_S)
        if status is None:
            status = self.wait(slowness())
        if status is None:
            os.killpg(self.process.pid, signal.SIGKILL)
            self.process.wait()
            raise Wrong("no end within %d s:\n%s" % (LIMIT_S, self.text()))
        if status == -15 and stop and self.text().strip():
            status = 3  # it was ending already, after an error
        if status < 0 or status > 3:
            raise Wrong("signal %d:\n%s" % (-status, self.text()) if status < 0 else
                        "exit status %d:\n%s" % (status, self.text()))
        if status != 0 and not self.text().strip():
            raise Wrong("exit status %d without a text" % status)
        return status
