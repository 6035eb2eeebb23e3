"""The vendor's command line, as a process: with its output into a pipe, and in a terminal."""

import collections
import json
import os
import pty
import re
import subprocess

from platform_under_test import ENVIRONMENTS

PROGRAM = ENVIRONMENTS / "cli/bin/limacharlie"
ESCAPES = re.compile(r"\x1b\[[0-9;?]*[A-Za-z]")

Ended = collections.namedtuple("Ended", "code out err")


class CommandLine:
    """Signed in with an API key. Its home is new, so that it has no tokens of other tests."""

    def __init__(self, url, key, oid, home):
        self.environment = {
            "PATH": os.environ["PATH"],
            "HOME": str(home),
            "TERM": "xterm",
            "COLUMNS": "200",
            "LC_API_URL": url,
            "LC_JWT_URL": url + "/jwt",
            "LC_API_KEY": key,
            "LC_OID": oid,
        }

    def run(self, *words, stdin=""):
        """What the command prints into pipes."""
        ended = subprocess.run(
            [PROGRAM, *words], env=self.environment, input=stdin, capture_output=True, text=True, timeout=120
        )
        return Ended(ended.returncode, ended.stdout, ended.stderr)

    def json(self, *words, stdin=""):
        """The JSON that a command prints, which must succeed. Some print a sentence before it."""
        ended = self.run("--output", "json", *words, stdin=stdin)
        if ended.code != 0:
            raise AssertionError(f"{' '.join(words)} exited with {ended.code}: {ended.err}")
        start = re.search(r"^[{\[\"]", ended.out, re.MULTILINE)
        return json.loads(ended.out[start.start() :]) if start else None

    def terminal(self, *words, stdin=""):
        """What a command shows in a terminal, which must succeed: its default form, for people."""
        reader, writer = pty.openpty()
        with subprocess.Popen(
            [PROGRAM, *words], env=self.environment, stdin=subprocess.PIPE, stdout=writer, stderr=subprocess.STDOUT
        ) as process:
            os.close(writer)
            process.stdin.write(stdin.encode())
            process.stdin.close()
            shown = b"".join(iter(lambda: read(reader), b"")).decode()
        os.close(reader)
        if process.returncode != 0:
            raise AssertionError(f"{' '.join(words)} exited with {process.returncode}: {shown}")
        return ESCAPES.sub("", shown).replace("\r\n", "\n")


def read(terminal):
    try:
        return os.read(terminal, 65536)
    except OSError:
        return b""  # nobody writes any more
