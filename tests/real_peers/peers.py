"""The servers that every test shares, and how tests call them through `annex http`.

A server starts when the first test asks for it, on a free port and in a temporary folder, and ends with the process.
"""

import atexit
import base64
import functools
import json
import os
import pathlib
import signal
import socket
import subprocess
import sys
import tempfile
import time
import unittest

HERE = pathlib.Path(__file__).resolve().parent
ROOT = HERE.parent.parent
PROGRAM = pathlib.Path(os.environ.get("ANNEX_PROGRAM", ROOT / "target/debug/annex"))
INSTALLED = pathlib.Path(os.environ.get("REAL_PEERS", ROOT / "target/real-peers"))

USER, PASSWORD = "Mufasa", "Circle of Life"

# Longer than anything takes here, so that only what never happens fails.
DEADLINE = 60


class Exchange:
    """What went out for one request, and what its extension would get."""

    def __init__(self, line):
        line = json.loads(line)
        self.sent = line["sent"]
        self.answer = line["answer"]

    @property
    def status(self):
        if "error" in self.answer:
            raise AssertionError(f"no answer: {self.answer}")
        return self.answer["status"]

    def json(self):
        return json.loads(self.answer["bodyText"])

    def header(self, name, of=-1):
        """A header that was sent, with the last request where `of` does not say."""
        return self.sent[of]["headers"][name]

    def body(self, of=-1):
        return base64.b64decode(self.sent[of]["bodyBase64"])


def send_all(requests, answers=None, **fixed):
    """Sends requests, one after the other and on kept connections; with `answers` to nobody."""
    lines = []
    for request in requests:
        line = {"request": request, "install": {"hosts": ["127.0.0.1", "api.example.com"]}, **fixed}
        if answers is not None:
            line["answers"] = answers
        lines.append(json.dumps(line))
    done = subprocess.run(
        [PROGRAM, "http", "--allow-private-networks"], input="\n".join(lines), capture_output=True, text=True,
        timeout=DEADLINE,
    )  # fmt: skip
    if done.returncode != 0:
        raise AssertionError(f"annex http: {done.returncode} {done.stderr}")
    return [Exchange(line) for line in done.stdout.splitlines()]


def send(request, **fixed):
    [exchange] = send_all([request], **fixed)
    return exchange


def signed(request, **fixed):
    """What would go out, with all that is added to it. Nothing is sent."""
    exchange = send(request, answers=[{"status": 204}], **fixed)
    if exchange.answer.get("status") != 204:
        raise AssertionError(f"refused: {exchange.answer}")
    return exchange


@functools.cache
def folder():
    made = tempfile.TemporaryDirectory(prefix="annex-real-peers-")
    # Functions that are registered later run earlier: the processes end before their folder goes.
    atexit.register(made.cleanup)
    # As it comes, the signal would end this process alone.
    signal.signal(signal.SIGTERM, signal.default_int_handler)
    # Servers that are started by root give it up, and must still find their files.
    os.chmod(made.name, 0o755)
    return pathlib.Path(made.name)


def start(name, command, environment=None, stdout=subprocess.PIPE):
    """Starts a process that ends with this one."""
    path = folder() / f"{name}.log"
    with open(path, "ab") as log:
        given = {"PATH": os.environ["PATH"], "HOME": folder(), "PYTHONDONTWRITEBYTECODE": "1", **(environment or {})}
        process = subprocess.Popen(
            [str(part) for part in command],
            env={name: str(value) for name, value in given.items()},
            cwd=folder(), stdout=log if stdout is None else stdout, stderr=log, stdin=subprocess.DEVNULL, text=True,
        )  # fmt: skip
    atexit.register(stop, process)
    return process, path


def stop(process):
    process.terminate()
    try:
        process.wait(timeout=20)
    except subprocess.TimeoutExpired:
        process.kill()
        process.wait()
    if process.stdout:
        process.stdout.close()


def start_and_read_port(name, command, environment=None):
    process, log = start(name, command, environment)
    line = process.stdout.readline().strip()
    if not line.isdigit():
        raise AssertionError(f"{name} did not start: {line} {log.read_text()}")
    return f"http://127.0.0.1:{line}"


def start_on_free_port(name, configure):
    """Starts a server that has to be told its port: `configure` answers the command and the environment for one."""
    for _ in range(10):
        with socket.socket() as probe:
            probe.bind(("127.0.0.1", 0))
            port = probe.getsockname()[1]
        process, log = start(name, *configure(port), stdout=None)
        end = time.monotonic() + DEADLINE
        # It ends by itself where another process was faster with the port.
        while process.poll() is None:
            try:
                socket.create_connection(("127.0.0.1", port), timeout=1).close()
            except OSError:
                if end < time.monotonic():
                    break
                time.sleep(0.02)
            else:
                return f"http://127.0.0.1:{port}"
        stop(process)
    raise AssertionError(f"{name} did not start: {log.read_text()}")


@functools.cache
def python_server(name, *rest, **environment):
    return start_and_read_port(name, [sys.executable, HERE / "start_server.py", name, *rest], environment)


@functools.cache
def hawk():
    node_modules = INSTALLED / "node/node_modules"
    return start_and_read_port("hawk", ["node", HERE / "hawk_server.js"], {"NODE_PATH": node_modules})


def system(path):
    """A file of the distribution's packages: as they were unpacked, or as they are installed."""
    unpacked = INSTALLED / "system" / path
    return unpacked if unpacked.exists() else pathlib.Path("/") / path


def system_environment():
    libraries = INSTALLED.glob("system/**/*.so.*")
    return {"LD_LIBRARY_PATH": ":".join(sorted({str(library.parent) for library in libraries}))}


def served_files():
    """A folder with a file that only users may read."""
    files = folder() / "files"
    for name in ["md5", "auth-int", "all", "sha-256", "sha-512-256", "userhash"]:
        (files / name).mkdir(parents=True, exist_ok=True)
        (files / name / "file.txt").write_text(f"for users of {name}")
        (files / name / "päth and+plus.txt").write_text("with a name of its own")
    return files


class Case(unittest.TestCase):
    maxDiff = None

    def assert_status(self, status, exchange):
        self.assertEqual(exchange.answer.get("status"), status, f"{exchange.sent}\n{exchange.answer}")
