"""Telemetry, and what an extension does with the platform's API from inside its handlers (limacharlie 4.11.3)."""

import json
import pathlib
import tempfile

from command_line import CommandLine
from platform_under_test import EXTENSION, Case, eventually

RULE = {
    "detect": {"event": "LOGIN", "op": "is", "path": "event/user/name", "value": "root"},
    "respond": [
        {"action": "report", "name": "root logged in"},
        {
            "action": "extension request",
            "extension name": EXTENSION,
            "extension action": "echo",
            "extension request": {"msg": "{{ .event.user.name }} on {{ .routing.hostname }}", "n": "event.count",
                                  "cfg": "event.none"},
        },
    ],
}  # fmt: skip


class Handlers(Case):
    def ask(self, action, data=None):
        answer = self.org.request(action, data)
        self.assertEqual(answer.status, 200, answer.body)
        return answer.json()["data"]

    def events(self, query=""):
        found = self.org.call("GET", "/v1/orgs/{oid}/events" + query)["events"]
        return [(event["routing"]["event_type"], event["event"]) for event in found]

    def test_a_handler_calls_the_platform_with_the_token_that_it_got(self):
        did = self.ask("api")
        self.assertEqual(did["who"]["ident"], f"ext:{EXTENSION}")
        self.assertEqual(did["who"]["orgs"], [self.org.oid])
        self.assertEqual((did["may_set_secrets"], did["may_create_keys"]), (True, False))
        self.assertEqual((did["secret"], did["metadata_data"]), ({"secret": "two"}, None))
        self.assertEqual(did["called"]["data"]["data"], {"msg": "from the handler", "n": 3})
        record = self.org.call("GET", "/v1/hive/secret/{oid}/from-the-handler/data")
        self.assertEqual(record["data"], {"secret": "two"})

    def test_events_that_an_extension_sends_to_its_adapter_are_found_again(self):
        keys = self.ask("provision")["keys"]
        ((iid, key),) = keys[self.org.oid].items()
        self.assertEqual((key["desc"], key["tags"]), (f"ext {EXTENSION} webhook adapter", f"lc:system,ext:{EXTENSION}"))
        adapter = self.org.call("GET", f"/v1/hive/cloud_sensor/{{oid}}/{EXTENSION}/data")
        self.assertEqual(adapter["data"]["webhook"]["client_options"]["identity"]["installation_key"], iid)
        login = {"kind": "LOGIN", "user": {"name": "guest"}, "é": [1, 2.5, None]}
        logout = {"kind": "LOGOUT"}
        self.assertEqual(self.ask("send", {"event": login}), {"sent": True})
        self.assertEqual(self.ask("send", {"event": logout}), {"sent": True})
        self.assertEqual(self.events(), [("LOGOUT", logout), ("LOGIN", login)])
        self.assertEqual(self.events("?type=LOGIN"), [("LOGIN", login)])

        self.assertEqual(self.ask("deprovision"), {"keys": {self.org.oid: {}}})
        refused = self.org.request("send", {"event": login})
        self.assertEqual(refused.status, 502)
        self.assertIn("HTTP status code 404", refused.json()["error"])
        self.assertEqual(len(self.events()), 2, "what came stays")

    def test_an_event_that_a_rule_matches_calls_the_extension(self):
        with tempfile.TemporaryDirectory(dir=self.platform.folder) as home:
            cli = CommandLine(self.platform.url, self.platform.root_key, self.org.oid, pathlib.Path(home))
            cli.json("hive", "set", "--hive-name", "dr-general", "--key", "logins", "--enabled", stdin=json.dumps(RULE))
        self.ask("provision")
        for name in ["guest", "root"]:
            self.ask("send", {"event": {"kind": "LOGIN", "user": {"name": name}, "count": 7}})
        eventually("the call of the rule", lambda: self.org.requests("echo"))
        (message,) = self.org.requests("echo")
        # A path that leads nowhere leaves its member out.
        self.assertEqual(message["data"], {"msg": f"root on {EXTENSION}", "n": 7})
        self.assertEqual(message["org"]["ident"], "DR:dr-general.logins")
        self.assertEqual(self.org.errors(), [])
