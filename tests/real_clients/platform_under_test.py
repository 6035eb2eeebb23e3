"""The platform and the Python extension that every test shares, and how tests speak to them.

Both start when the first test asks for them, on free ports and in one temporary folder, and end with the process. Tests
do not share more than that: each makes its own organization.
"""

import atexit
import functools
import json
import os
import pathlib
import secrets
import signal
import subprocess
import tempfile
import time
import unittest
import urllib.error
import urllib.parse
import urllib.request

HERE = pathlib.Path(__file__).resolve().parent
ROOT = HERE.parent.parent
PROGRAM = pathlib.Path(os.environ.get("ANNEX_PROGRAM", ROOT / "target/debug/annex"))
ENVIRONMENTS = pathlib.Path(os.environ.get("REAL_CLIENTS", ROOT / "target/real-clients"))

EXTENSION = "conf-ext"
SHARED_SECRET = "test-secret-0123456789abcdef0123"
PERMISSIONS = [
    "org.get", "ext.request", "secret.get", "secret.set", "ikey.list", "ikey.set", "ikey.del", "cloudsensor.get",
    "cloudsensor.set", "cloudsensor.del",
]  # fmt: skip

# Longer than anything takes here, so that only what never happens fails.
DEADLINE = 60


def eventually(what, look, seconds=DEADLINE):
    """What `look` answers once that is true of anything."""
    end = time.monotonic() + seconds
    while not (found := look()):
        if end < time.monotonic():
            raise AssertionError(f"{what} did not happen within {seconds} seconds")
        time.sleep(0.05)
    return found


class Answer:
    def __init__(self, status, headers, body):
        self.status = status
        self.headers = headers
        self.body = body

    def json(self):
        return json.loads(self.body)


class Platform:
    def __init__(self, folder):
        self.folder = pathlib.Path(folder)
        self.root_key = secrets.token_hex(32)
        self.log = self.folder / "annex.log"
        self.records = self.folder / "records"
        self.records.touch()
        serve = ["serve", "--listen", "127.0.0.1:0", "--allow-private-networks", "--data", self.folder / "data"]
        line = self._start([PROGRAM, *serve], "annex", {"ANNEX_ROOT_KEY": self.root_key})
        self.url = line.split()[-1]
        told = {"LC_SHARED_SECRET": SHARED_SECRET, "EXT_RECORDS": self.records, "ANNEX_URL": self.url}
        python = ENVIRONMENTS / "extension/bin/python"
        self.extension_url = self._start([python, HERE / "conf_ext.py"], "extension", told)
        definition = {
            "name": EXTENSION, "url": self.extension_url, "secret": SHARED_SECRET, "description": "for tests",
            "permissions": PERMISSIONS, "required_extensions": [], "flairs": [],
        }  # fmt: skip
        self.operator = self.token("-")
        self.call("POST", "/v1/extension/definition", self.operator, document=definition)

    def _start(self, command, name, told):
        """Starts a process that ends with this one, and answers the first line it prints."""
        path = self.folder / f"{name}.log"
        with open(path, "wb") as log:
            # Nothing of the environment of whoever runs the tests; the home is where clients keep their caches.
            environment = {"PATH": os.environ["PATH"], "HOME": self.folder, **told}
            process = subprocess.Popen(
                [str(part) for part in command],
                env={name: str(value) for name, value in environment.items()},
                stdout=subprocess.PIPE, stderr=log, stdin=subprocess.DEVNULL, text=True,
            )  # fmt: skip
        atexit.register(stop, process)
        line = process.stdout.readline().strip()
        if not line:
            raise AssertionError(f"{name} did not start: {path.read_text()}")
        return line

    def request(self, method, path, token=None, form=None, document=None, headers=None):
        """Any answer, also a refusal."""
        body = None
        headers = dict(headers or {})
        if token:
            headers["Authorization"] = "Bearer " + token
        if form is not None:
            body = urllib.parse.urlencode(form).encode()
        if document is not None:
            body = json.dumps(document).encode()
            headers["Content-Type"] = "application/json"
        request = urllib.request.Request(self.url + path, data=body, headers=headers, method=method)
        try:
            with urllib.request.urlopen(request, timeout=DEADLINE) as response:
                return Answer(response.status, response.headers, response.read())
        except urllib.error.HTTPError as refusal:
            with refusal:
                return Answer(refusal.code, refusal.headers, refusal.read())

    def call(self, method, path, token, **rest):
        """The JSON of an answer that must be a success."""
        answer = self.request(method, path, token, **rest)
        if answer.status != 200:
            raise AssertionError(f"{method} {path}: {answer.status} {answer.body.decode()}")
        return answer.json()

    def token(self, oid):
        return self.call("POST", "/jwt", None, form={"secret": self.root_key, "oid": oid})["jwt"]

    def organization(self, name, oid=""):
        form = {"name": name, "oid": oid}
        made = self.call("POST", "/v1/orgs/new", self.operator, form=form)
        return Organization(self, made["data"]["oid"])

    def recorded(self):
        """Everything that the extension recorded, in the order in which it came."""
        with open(self.records, encoding="utf-8") as lines:
            # The last line may be half written.
            return [json.loads(line) for line in lines if line.endswith("\n")]


class Organization:
    """An organization that the operator looks after."""

    def __init__(self, platform, oid):
        self.platform = platform
        self.oid = oid
        self.token = platform.token(oid)

    def call(self, method, path, **rest):
        return self.platform.call(method, path.format(oid=self.oid), self.token, **rest)

    def subscribe(self):
        self.call("POST", "/v1/orgs/{oid}/subscription/extension/" + EXTENSION)
        eventually("the event of the subscription", lambda: self.events("subscribe"))

    def request(self, action, data=None, headers=None, **form):
        """Asks the extension, and answers whatever comes of it."""
        form = {"oid": self.oid, "action": action, "data": json.dumps(data or {}), **form}
        path = "/v1/extension/request/" + EXTENSION
        return self.platform.request("POST", path, self.token, form=form, headers=headers)

    def invocation(self, answer):
        return self.call("GET", answer.headers["Location"])

    def secret(self, name, value):
        form = {"data": json.dumps({"secret": value})}
        self.call("POST", f"/v1/hive/secret/{{oid}}/{name}/data", form=form)

    def errors(self):
        return self.call("GET", "/v1/errors/{oid}")["errors"]

    def error_texts(self):
        return sorted(entry["error"] for entry in self.errors())

    def usage(self):
        """The sums of all that was metered, by SKU."""
        sums = {}
        for entry in self.call("GET", "/v1/orgs/{oid}/usage")["usage"]:
            sums[entry["sku"]] = sums.get(entry["sku"], 0) + entry["value"]
        return sums

    def messages(self, member):
        """What the extension got about this organization as `member` of a message, with the message's key."""
        found = []
        for entry in self.platform.recorded():
            message = entry.get("message", {})
            part = message.get(member)
            if part and part.get("org", part).get("oid") == self.oid:
                found.append({"key": message["idempotency_key"], **part})
        return found

    def requests(self, action):
        return [message for message in self.messages("request") if message["action"] == action]

    def events(self, name):
        return [message for message in self.messages("event") if message["event_name"] == name]

    def handled_errors(self):
        """The texts that the error handler of the extension was called with."""
        entries = (entry.get("handled_error", {}) for entry in self.platform.recorded())
        return sorted(entry["error"] for entry in entries if entry.get("oid") == self.oid)


def stop(process):
    process.terminate()
    try:
        process.wait(timeout=20)
    except subprocess.TimeoutExpired:
        process.kill()
    process.stdout.close()


@functools.cache
def platform():
    folder = tempfile.TemporaryDirectory(prefix="annex-real-clients-")
    # Functions that are registered later run earlier: the processes end before their folder goes.
    atexit.register(folder.cleanup)
    # As it comes, the signal would end this process alone.
    signal.signal(signal.SIGTERM, signal.default_int_handler)
    return Platform(folder.name)


class Case(unittest.TestCase):
    """A test with an organization of its own, subscribed to the extension."""

    maxDiff = None
    subscribed = True

    def setUp(self):
        self.platform = platform()
        self.org = self.platform.organization(self.id())
        if self.subscribed:
            self.org.subscribe()
