"""The vendor's command line (limacharlie 5.10.1), unmodified: what it prints, and how it ends.

Each command runs into a pipe, where it prints JSON, and in a terminal; signed in with the root key, and with an API key
that the command line made itself.
"""

import json
import pathlib
import subprocess
import tempfile

from command_line import CommandLine
from platform_under_test import ENVIRONMENTS, EXTENSION, Case, eventually, platform

RULE = {
    "detect": {"event": "LOGIN", "op": "is", "path": "event/user", "value": "root"},
    "respond": [
        {"action": "report", "name": "root logged in"},
        {"action": "extension request", "extension name": EXTENSION, "extension action": "echo"},
    ],
}
METADATA = {"expiry": 0, "enabled": True, "tags": [], "comment": ""}


def without_etag(record):
    """A record as it is printed, but for what changes with each write."""
    assert record["sys_mtd"].keys() == {"etag"} and record["sys_mtd"]["etag"], record
    return {"data": record["data"], "usr_mtd": record["usr_mtd"]}


class CliCase(Case):
    def setUp(self):
        super().setUp()
        home = tempfile.TemporaryDirectory(dir=self.platform.folder)
        self.addCleanup(home.cleanup)
        self.home = pathlib.Path(home.name)
        self.cli = self.sign_in(self.platform.root_key)

    def sign_in(self, key, oid=None):
        return CommandLine(self.platform.url, key, oid or self.org.oid, self.home)

    def shows(self, expected, *words, say=()):
        """A command that reads: prints this JSON into a pipe, and these words in a terminal."""
        self.assertEqual(self.cli.json(*words), expected)
        self.says(*words, say=say)

    def says(self, *words, say=(), stdin=""):
        """A command that shows these words in a terminal."""
        shown = self.cli.terminal(*words, stdin=stdin)
        for word in say:
            self.assertIn(word, shown)

    def refused(self, code, text, *words, cli=None, stdin=""):
        """A command that ends with this exit code, and says why in one line before its suggestion."""
        ended = (cli or self.cli).run(*words, stdin=stdin)
        self.assertEqual((ended.code, ended.out), (code, ""), ended.err)
        self.assertEqual(ended.err.splitlines()[0], text)

    def written(self, hive, name, answer):
        """The answer to a write, all of it."""
        self.assertRegex(answer.pop("guid"), r"^[0-9a-f-]{36}$")
        self.assertEqual(answer, {"hive": {"name": hive, "partition": self.org.oid}, "name": name})


class Commands:
    """The commands of whoever may do everything in an organization."""

    def test_auth(self):
        self.assertEqual(self.cli.run("auth", "test").out, "Authentication successful.\n")
        self.says("auth", "test", say=["Authentication successful."])
        self.shows({"oid": self.org.oid, "ident": self.ident(), "orgs": [self.org.oid]}, "auth", "whoami",
                   say=[self.org.oid, self.ident()])  # fmt: skip
        self.shows({"perm": "secret.set", "has_perm": True}, "auth", "whoami", "--check-perm", "secret.set",
                   say=["has_perm  True"])  # fmt: skip
        mine = {"oid": self.org.oid, "name": self.id()}
        self.shows([mine], "auth", "list-orgs", "--filter", self.id(), say=[self.org.oid, self.id()])

    def test_org(self):
        info = self.cli.json("org", "info")
        self.assertEqual((info["oid"], info["name"]), (self.org.oid, self.id()))
        self.says("org", "info", say=[self.org.oid, self.id()])
        self.shows([], "org", "errors")
        for _ in range(2):
            self.org.request("fail_permanent")
        self.org.request("nope")
        first, second = self.cli.json("org", "errors")
        self.assertEqual((first["component"], first["error"]), ("conf-ext.fail_permanent", "api_key is not valid"))
        self.assertEqual((second["component"], second["error"]), ("conf-ext.nope", "unknown request action: nope"))
        self.assertEqual((first["count"], second["count"]), (2, 1), "a failure that repeats is one entry")
        self.says("org", "errors", say=["conf-ext.fail_permanent", "api_key is not valid"])
        dismiss = ("org", "dismiss-error", "--component")
        self.assertEqual(self.cli.json(*dismiss, first["component"]), {"success": True})
        self.assertEqual(self.cli.json("org", "errors"), [second])
        self.says(*dismiss, second["component"], say=["success  True"])
        self.assertEqual(self.cli.json("org", "errors"), [])

    def test_api_key(self):
        create = ("api-key", "create", "--name")
        made = self.cli.json(*create, "ci", "--permissions", "org.get, secret.get")
        self.assertEqual((made.keys(), made["success"]), ({"success", "api_key", "key_hash"}, True))
        self.cli.json(*create, "other", "--permissions", "*")  # a terminal shows two keys as a table
        listed = self.cli.json("api-key", "list", "--name", "ci")
        self.assertEqual(listed.keys(), {made["key_hash"]})
        self.assertEqual(listed[made["key_hash"]]["priv"], ["org.get", "secret.get"])
        self.assertNotIn(made["api_key"], json.dumps(listed))
        self.says("api-key", "list", say=["ci", "org.get, secret.get"])

        limited = self.sign_in(made["api_key"])
        self.assertEqual(limited.json("org", "info")["oid"], self.org.oid)
        needs = "Error: Permission denied: {'error': 'the token lacks the permission apikey.ctrl', "
        self.refused(2, needs + "'code': 'forbidden'}", "api-key", "list", cli=limited)

        delete = ("api-key", "delete", "--confirm", "--key-hash")
        self.assertEqual(self.cli.json(*delete, made["key_hash"]), {"success": True})
        self.assertEqual(self.cli.json("api-key", "list", "--name", "ci"), {})
        self.assertEqual(limited.run("org", "info").code, 2, "a key that is gone opens nothing, with its old token")
        self.says(*create, "second", "--permissions", "org.get", say=["API key 'second' created."])
        (gone,) = self.cli.json("api-key", "list", "--name", "second")
        self.says(*delete, gone, say=[f"API key '{gone}' deleted."])

    def test_extension_subscriptions(self):
        subscriptions = self.cli.json("extension", "list")
        self.assertEqual({name: one["name"] for name, one in subscriptions.items()}, {EXTENSION: EXTENSION})
        self.says("extension", "list", say=[EXTENSION])
        available = {one["name"]: one["short_desc"] for one in self.cli.json("extension", "list-available")}
        self.assertEqual(available, {EXTENSION: "for tests"})
        self.says("extension", "list-available", say=[EXTENSION, "for tests"])
        named = ("--name", EXTENSION)
        schema = self.cli.json("extension", "schema", *named)
        self.assertEqual(schema["request_schema"]["echo"]["parameters"]["requirements"], [["msg"]])
        self.says("extension", "schema", *named, say=["required_events  subscribe, unsubscribe, update"])
        for command in ["rekey", "subscribe", "unsubscribe"]:
            self.assertEqual(self.cli.json("extension", command, *named), {"success": True})
        self.assertEqual(self.cli.json("extension", "list"), {})
        missing = f"Error: Resource not found: {{'error': 'the organization is not subscribed to {EXTENSION}', "
        self.refused(3, missing + "'code': 'not-found'}", "extension", "unsubscribe", *named)
        for command, sentence in [
            ("subscribe", f"Subscribed to extension '{EXTENSION}'."),
            ("rekey", f"Extension '{EXTENSION}' rekeyed."),
            ("unsubscribe", f"Unsubscribed from extension '{EXTENSION}'."),
        ]:
            self.says("extension", command, *named, say=[sentence, "success  True"])
        eventually("the events of both ends", lambda: len(self.org.events("unsubscribe")) == 2)
        self.assertEqual(self.cli.json("extension", "list"), {})

    def test_extension_request(self):
        ask = ("extension", "request", "--name", EXTENSION, "--action")
        answer = self.cli.json(*ask, "echo", "--data", '{"msg": "hé<&>", "n": 1}')
        data = {"msg": "hé<&>", "n": 1}
        self.assertEqual(answer, {"data": {"data": data, "conf": {}, "resources": {}, "oid": self.org.oid}})
        self.says(*ask, "echo", "--data", '{"msg": "seen"}', say=['"msg":"seen"'])
        self.assertEqual([message["data"]["msg"] for message in self.org.requests("echo")], ["hé<&>", "seen"])

        # The handler asks who its token belongs to.
        who = self.cli.json(*ask, "whoami", "--impersonate")["data"]
        self.assertEqual((who["ident"], who["orgs"]), (self.ident(), [self.org.oid]))
        self.says(*ask, "whoami", "--impersonate", say=["data"])
        refusal = "Error: API error (400): {'error': 'action whoami is impersonated and the call has no user token', "
        self.refused(1, refusal + "'code': 'impersonation-refused'}", *ask, "whoami")

        self.refused(
            1, "Error: API error (400): {'error': 'missing one of msg', 'code': 'schema-refused'}", *ask, "echo"
        )
        self.refused(
            1, "Error: API error (400): {'error': 'api_key is not valid', 'code': 'extension-error'}",
            *ask, "fail_permanent",
        )  # fmt: skip

    def test_extension_configuration(self):
        named = ("--name", EXTENSION)
        refusal = "Error: API error (400): {'error': 'api_key is required', 'code': 'config-refused'}"
        self.refused(1, refusal, "extension", "config-set", *named, stdin='{"limit": 3}')
        self.assertEqual(self.cli.json("extension", "config-list"), {})
        config = {"api_key": "k", "limit": 3}
        written = self.cli.json("extension", "config-set", *named, stdin=json.dumps(config))
        self.written("extension_config", EXTENSION, written)
        record = self.cli.json("extension", "config-get", *named)
        self.assertEqual(without_etag(record), {"data": config, "usr_mtd": METADATA})
        self.says("extension", "config-get", *named, say=["api_key", "limit"])
        self.shows({EXTENSION: record}, "extension", "config-list", say=[EXTENSION, '"api_key":"k"'])
        self.says("extension", "config-set", *named, stdin='{"data": {"api_key": "l"}}', say=[EXTENSION])
        self.assertEqual(self.cli.json("extension", "config-get", *named)["data"], {"api_key": "l"})
        delete = ("extension", "config-delete", "--confirm", *named)
        self.assertEqual(self.cli.json(*delete), {"success": True})
        missing = f"'lc_error_code:RECORD_NOT_FOUND - there is no record {EXTENSION}', 'code': 'record-not-found'}}"
        self.refused(1, "Error: API error (400): {'error': " + missing, "extension", "config-get", *named)
        self.cli.json("extension", "config-set", *named, stdin=json.dumps(config))
        self.says(*delete, say=["success  True"])
        self.assertEqual(self.cli.json("extension", "config-list"), {})

    def test_secret(self):
        name = "a/b c"  # travels as %2F and %20
        self.written("secret", name, self.cli.json("secret", "set", "--key", name, "--value", "v=&%é"))
        record = self.cli.json("secret", "get", "--key", name)
        self.assertEqual(without_etag(record), {"data": {"secret": "v=&%é"}, "usr_mtd": METADATA})
        self.says("secret", "get", "--key", name, say=["v=&%é"])
        self.shows({name: record}, "secret", "list", say=[name])
        self.shows({name: {**record, "data": None}}, "secret", "list", "--metadata-only", say=[name])
        # With flags the metadata is read first: on a record that is there, and on one that is not.
        self.cli.json("secret", "set", "--key", name, "--value", "w", "--tag", "t", "--comment", "c")
        self.written("secret", "new", self.cli.json("secret", "set", "--key", "new", "--value", "x", "--tag", "u"))
        changed = self.cli.json("secret", "get", "--key", name)
        expected = {"data": {"secret": "w"}, "usr_mtd": {**METADATA, "tags": ["t"], "comment": "c"}}
        self.assertEqual(without_etag(changed), expected)
        self.assertNotEqual(changed["sys_mtd"], record["sys_mtd"])
        self.shows({name: changed}, "secret", "list", "--tag-prefix", "t", say=[name])
        page = self.cli.json("secret", "list", "--limit", "1")
        self.assertEqual((list(page["records"]), bool(page["next_cursor"])), ([name], True))
        rest = self.cli.json("secret", "list", "--limit", "1", "--cursor", page["next_cursor"])
        self.assertEqual((list(rest["records"]), rest["next_cursor"]), (["new"], ""))
        self.says("secret", "set", "--key", "third", "--value", "y", say=["third"])
        delete = ("secret", "delete", "--confirm", "--key")
        self.assertEqual(self.cli.json(*delete, name), {"success": True})
        self.says(*delete, "third", say=["success  True"])
        self.assertEqual(list(self.cli.json("secret", "list")), ["new"])

    def test_hive_secret(self):
        self.check_hive("secret", {"secret": "s"}, {"secret": 7}, '{"secret": "<text>"}')

    def test_hive_dr_general(self):
        self.check_hive("dr-general", RULE, {**RULE, "detect": {"op": "nope"}}, "the rule is refused: ")

    def test_hive_extension_config(self):
        self.check_hive("extension_config", {"api_key": "k"}, {"limit": 1}, "api_key is required", EXTENSION)

    def check_hive(self, hive, data, bad, why, name="r1"):
        of = ("--hive-name", hive)
        key = (*of, "--key", name)
        text = json.dumps(data)
        self.assertEqual(self.cli.json("hive", "validate", *key, stdin=text), {"valid": True})
        self.says("hive", "validate", *key, stdin=text, say=[f"Record '{name}' is valid."])
        self.assertEqual(self.cli.json("hive", "list", *of), {}, "validating writes nothing")
        for command in ["validate", "set"]:
            ended = self.cli.run("hive", command, *key, stdin=json.dumps(bad))
            self.assertEqual((ended.code, ended.out), (1, ""))
            self.assertTrue(ended.err.startswith("Error: API error (400): {'error': "), ended.err)
            self.assertIn(why, ended.err)
        self.written(hive, name, self.cli.json("hive", "set", *key, "--enabled", stdin=text))
        record = self.cli.json("hive", "get", *key)
        self.assertEqual(without_etag(record), {"data": data, "usr_mtd": METADATA})
        self.says("hive", "get", *key, say=["usr_mtd", "True"])
        self.shows({name: record}, "hive", "list", *of, say=[name])
        self.says("hive", "set", *key, "--tag-add", "x", say=[f"Record '{name}' set in hive '{hive}'."])
        tagged = {"data": data, "usr_mtd": {**METADATA, "tags": ["x"]}}
        self.assertEqual(without_etag(self.cli.json("hive", "get", *key)), tagged)

    def test_what_is_not_there_is_said_to_be_missing(self):
        missing = "Error: Resource not found: {'error': 'unknown extension: %s', 'code': 'not-found'}"
        self.refused(3, missing % "none", "extension", "request", "--name", "none", "--action", "a")
        self.refused(3, missing % "none", "extension", "subscribe", "--name", "none")
        self.refused(3, missing % "none", "extension", "schema", "--name", "none")
        # What is to be gone is gone.
        dismissed = self.cli.json("org", "dismiss-error", "--component", "a/b c")
        self.assertEqual(dismissed, {"success": True})


class WithTheRootKey(Commands, CliCase):
    def ident(self):
        return "operator"

    def test_org_create(self):
        made = self.cli.run("--output", "json", "org", "create", "--name", "made by the CLI")
        self.assertEqual(made.code, 0, made.err)
        answer, _ = json.JSONDecoder().raw_decode(made.out)
        oid = answer["data"]["oid"]
        self.assertEqual(answer, {"success": True, "data": {"oid": oid}})
        other = self.sign_in(self.platform.root_key, oid)
        self.assertEqual(other.json("org", "info")["name"], "made by the CLI")
        self.says("org", "create", "--name", "and another", say=["success  True", "Organization URL:"])


class WithAnApiKey(Commands, CliCase):
    def setUp(self):
        super().setUp()
        made = self.cli.json("api-key", "create", "--name", "all", "--permissions", "*")
        self.key_hash = made["key_hash"]
        self.cli = self.sign_in(made["api_key"])

    def ident(self):
        return f"key:{self.key_hash}"

    def test_org_create_is_for_the_operator(self):
        refusal = "{'error': 'only the operator of the platform may do this', 'code': 'forbidden'}"
        self.refused(2, "Error: Permission denied: " + refusal, "org", "create", "--name", "x")

    def test_the_library_before_it_signs_in_with_the_same_key(self):
        # limacharlie 4.11.3 takes nothing but UUIDs for keys.
        script = "\n".join([
            "import json, sys, limacharlie",
            "manager = sys.modules['limacharlie.Manager']",
            "manager.ROOT_URL, manager.API_TO_JWT_URL = sys.argv[1], sys.argv[1] + '/jwt'",
            "client = limacharlie.Manager(oid=sys.argv[2], secret_api_key=sys.argv[3])",
            "print(json.dumps([client.whoAmI()['ident'], list(limacharlie.Extension(client).list())]))",
        ])  # fmt: skip
        python = ENVIRONMENTS / "extension/bin/python"
        told = [self.platform.url, self.org.oid, self.cli.environment["LC_API_KEY"]]
        ended = subprocess.run([python, "-c", script, *told], capture_output=True, text=True, timeout=120)
        self.assertEqual((ended.returncode, ended.stderr), (0, ""))
        self.assertEqual(json.loads(ended.stdout), [self.ident(), [EXTENSION]])

    def test_another_organization_stays_closed(self):
        other = platform().organization("closed")
        cli = self.sign_in(self.cli.environment["LC_API_KEY"], other.oid)
        ended = cli.run("org", "info")
        self.assertEqual((ended.code, ended.out), (2, ""))
        self.assertIn("Failed to get JWT: ", ended.err)


class WithAWrongKey(CliCase):
    subscribed = False

    def test_nothing_opens(self):
        cli = self.sign_in("0" * 64)
        for words in [("auth", "test"), ("org", "info"), ("secret", "list")]:
            ended = cli.run(*words)
            self.assertEqual((ended.code, ended.out), (2, ""))
            self.assertIn('Failed to get JWT: {"error":"the secret is not valid","code":"unauthenticated"}', ended.err)
