"""What an extension on the vendor's SDK (lcextension 1.1.10) sees of the platform, and what callers see of it."""

import json
import unittest

from platform_under_test import EXTENSION, Case, eventually, platform

UUID = r"^[0-9a-f]{8}(-[0-9a-f]{4}){3}-[0-9a-f]{12}$"


class Answers(Case):
    def test_a_request_reaches_its_handler_whole_and_its_answer_comes_back(self):
        answer = self.org.request("echo", {"msg": "hé", "tags": ["a"], "cfg": {"a": True, "deep": [1.5]}})
        data = {"msg": "hé", "tags": ["a"], "cfg": {"a": True, "deep": [1.5]}, "n": 3}
        seen = {"data": data, "conf": {}, "resources": {}, "oid": self.org.oid}
        self.assertEqual((answer.status, answer.json()["data"]), (200, seen))
        (message,) = self.org.requests("echo")
        self.assertRegex(message["key"], UUID)
        self.assertEqual(message["data"], data)
        self.assertEqual(message["org"]["oid"], self.org.oid)
        self.assertEqual(message["org"]["jwt"].count("."), 2)

    def test_an_answer_of_5_mib_comes_back_whole(self):
        answer = self.org.request("big", {"bytes": 5 << 20})
        self.assertEqual((answer.status, len(answer.json()["data"]["x"])), (200, 5 << 20))

    def test_an_answer_over_the_limit_is_refused_and_not_asked_for_again(self):
        # The SDK's answer is `{"version": 20221218, "data": {"x": "…"}, "retriable": true}`.
        around = len(json.dumps({"version": 20221218, "data": {"x": ""}, "retriable": True}))
        answer = self.org.request("big", {"bytes": 100_000_001 - around})
        text = "response body size 100000001 exceeds limit"
        self.assertEqual((answer.status, answer.json()["error"]), (502, text))
        self.assertEqual(self.org.error_texts(), [text])
        self.assertEqual(len(self.org.requests("big")), 1)

    def test_a_caller_that_does_not_wait_finds_the_answer_in_the_record(self):
        answer = self.org.request("sleep", {"sec": 3}, headers={"Prefer": "wait=1"})
        self.assertEqual((answer.status, answer.json()["status"]), (202, "running"))

        def ended():
            record = self.org.invocation(answer)
            return record if "finished_at" in record else None

        record = eventually("the end of the call", ended)
        self.assertEqual((record["status"], record["data"]), ("succeeded", {"slept": 3}))
        self.assertEqual(len(self.org.requests("sleep")), 1)


class Failures(Case):
    def check(self, action, attempts, status, text):
        answer = self.org.request(action)
        self.assertEqual((answer.status, answer.json()["error"]), (status, text))
        self.assertEqual(self.org.error_texts(), [text])
        keys = [message["key"] for message in self.org.requests(action)]
        self.assertEqual(len(keys), attempts)
        self.assertEqual(len(set(keys)), min(attempts, 1), "attempts of one call share its key")

    def test_an_error_that_says_nothing_of_retries_is_tried_three_times(self):
        self.check("fail_default", 3, 502, "vendor API timed out")

    def test_an_error_that_may_be_retried_is_tried_three_times(self):
        self.check("fail_retriable", 3, 502, "vendor API timed out")

    def test_an_error_that_may_not_be_retried_is_tried_once(self):
        self.check("fail_permanent", 1, 400, "api_key is not valid")

    def test_an_exception_of_a_handler_is_tried_three_times(self):
        self.check("boom", 3, 502, "integer division or modulo by zero")

    def test_an_action_without_a_handler_is_the_extensions_error(self):
        self.check("unhandled", 3, 502, "unknown action 'unhandled'")

    def test_an_action_that_is_not_in_the_schema_is_not_sent(self):
        self.check("nope", 0, 400, "unknown request action: nope")


class Schema(Case):
    def check(self, data, text):
        answer = self.org.request("echo", data)
        self.assertEqual((answer.status, answer.json()["error"]), (400, text))
        self.assertIn(text, self.org.error_texts())
        self.assertEqual(self.org.requests("echo"), [])

    def test_what_does_not_fit_the_schema_is_refused_before_it_is_sent(self):
        self.check({}, "missing one of msg")
        self.check({"msg": "x", "nope": 1}, "unknown parameter name: nope")
        self.check({"msg": 7}, "invalid value for msg: not a string, a float64")

    def test_the_schema_comes_back_as_the_extension_answers_it(self):
        schema = self.org.call("GET", f"/v1/extension/schema/{EXTENSION}?oid={{oid}}")
        self.assertEqual(schema["required_events"], ["subscribe", "unsubscribe", "update"])
        self.assertEqual(schema["config_schema"]["requirements"], [["api_key"]])
        self.assertEqual(schema["request_schema"]["echo"]["parameters"]["fields"]["n"]["default_value"], 3)


class Continuations(Case):
    def test_a_chain_goes_on_with_its_state_under_keys_that_grow(self):
        self.org.request("continue", {"steps": 3})
        eventually("three continuations", lambda: len(self.org.requests("continue")) == 4)
        messages = self.org.requests("continue")
        self.assertEqual([message["data"]["steps"] for message in messages], [3, 2, 1, 0])
        key = messages[0]["key"]
        keys = [key, f"{key}:1", f"{key}:1:2", f"{key}:1:2:3"]
        self.assertEqual([message["key"] for message in messages], keys)

    def test_a_fan_out_of_100_arrives_whole(self):
        self.fan_out(100)
        self.assertEqual(self.org.errors(), [])

    def test_a_fan_out_of_101_loses_one_and_says_so(self):
        self.fan_out(101)
        text = "continuation count 101 exceeds max 100"
        self.assertEqual(self.org.error_texts(), [text])
        eventually("the report to the extension", self.org.handled_errors)
        self.assertEqual(self.org.handled_errors(), [text])

    def fan_out(self, asked):
        answer = self.org.request("fanout", {"n": asked})
        self.assertEqual(answer.json()["data"], {"queued": asked})
        (parent,) = self.org.requests("fanout")
        eventually("the 100th child", lambda: 100 <= len(self.org.requests("echo")))
        children = self.org.requests("echo")
        self.assertEqual(
            sorted(child["data"]["msg"] for child in children), sorted(f"child {n}" for n in range(100))
        )
        self.assertEqual({child["key"] for child in children}, {parent["key"] + ":1"})

    def test_a_delay_over_the_limit_is_cut_and_reported_and_holds_no_sibling_up(self):
        self.org.request("fanout", {"n": 3, "first_delay": 400})
        text = "continuation delay 400 exceeds max 300, clamped"
        self.assertEqual(self.org.error_texts(), [text])
        eventually("two of three children", lambda: len(self.org.requests("echo")) == 2)
        eventually("the report to the extension", self.org.handled_errors)
        self.assertEqual(self.org.handled_errors(), [text])


class Metrics(Case):
    def meter(self, skus, value, key):
        answer = self.org.request("metered", {"skus": skus, "value": value, "key": key})
        self.assertEqual((answer.status, answer.json()["data"]), (200, {"ok": True}))

    def check(self, expected):
        eventually(f"usage of {expected}", lambda: self.org.usage() == expected)

    def test_a_report_is_recorded_once_under_its_key(self):
        self.meter(2, 7, "one")
        self.meter(2, 7, "one")
        self.meter(1, 5, "two")
        self.check({"conf-ext:sku0": 12, "conf-ext:sku1": 7})
        self.assertEqual(self.org.errors(), [])

    def test_ten_skus_are_recorded_and_eleven_are_not(self):
        self.meter(11, 7, "eleven")
        self.assertEqual(self.org.error_texts(), ["too many metrics"])
        self.meter(10, 1, "ten")
        self.check({f"conf-ext:sku{n}": 1 for n in range(10)})

    def test_a_negative_value_is_left_out_and_the_rest_recorded(self):
        self.meter(1, -4, "negative")
        self.check({"conf-ext:positive": 1})
        self.assertEqual(self.org.error_texts(), ["negative value for metric sku0 skipped"])


class Secrets(Case):
    VALUE = "correct-horse-battery-staple"

    def setUp(self):
        super().setUp()
        self.org.secret("vendor", self.VALUE)
        config = {"data": json.dumps({"api_key": "hive://secret/vendor", "limit": 2})}
        self.org.call("POST", f"/v1/hive/extension_config/{{oid}}/{EXTENSION}/data", form=config)

    def test_references_are_resolved_for_the_handler_only(self):
        answer = self.org.request("echo", {"msg": "hive://secret/vendor", "key": "hive://secret/vendor"})
        (message,) = self.org.requests("echo")
        # Only fields that the schema declares secret are resolved.
        self.assertEqual(message["data"], {"msg": "hive://secret/vendor", "key": self.VALUE, "n": 3})
        self.assertEqual(message["config"], {"api_key": self.VALUE, "limit": 2})
        self.assertEqual(answer.status, 200)
        self.assertNotIn(self.VALUE.encode(), answer.body)

    def test_what_the_extension_echoes_in_an_error_is_redacted(self):
        answer = self.org.request("leak", {"key": "hive://secret/vendor"})
        (message,) = self.org.requests("leak")
        self.assertEqual(message["data"]["key"], self.VALUE)
        self.assertEqual(answer.status, 400)
        self.assertRegex(answer.json()["error"], "^the vendor refuses .+ and .+$")
        told = answer.body.decode() + json.dumps(self.org.errors()) + self.platform.log.read_text()
        self.assertNotIn(self.VALUE, told)

    def test_a_secret_that_is_missing_fails_the_call_before_it_is_sent(self):
        answer = self.org.request("echo", {"msg": "x", "key": "hive://secret/none"})
        self.assertEqual(answer.status, 400)
        self.assertIn("none", answer.json()["error"])
        self.assertEqual(self.org.requests("echo"), [])


class Configurations(Case):
    def write(self, config):
        path = f"/v1/hive/extension_config/{self.org.oid}/{EXTENSION}/data"
        return self.platform.request("POST", path, self.org.token, form={"data": json.dumps(config)})

    def test_one_that_the_extension_refuses_is_not_kept(self):
        answer = self.write({"limit": 3})
        self.assertEqual((answer.status, answer.json()["error"]), (400, "api_key is required"))
        self.assertEqual([message["conf"] for message in self.org.messages("conf_validation")], [{"limit": 3}])
        self.assertEqual(self.org.call("GET", "/v1/hive/extension_config/{oid}"), {})

    def test_one_that_the_extension_takes_comes_with_every_request_and_event(self):
        self.assertEqual(self.write({"api_key": "k", "unknown": 1}).status, 200)
        self.org.request("echo", {"msg": "x"})
        self.assertEqual(self.org.requests("echo")[0]["config"], {"api_key": "k"})
        self.org.call("DELETE", f"/v1/orgs/{{oid}}/subscription/extension/{EXTENSION}")
        eventually("the event of the end", lambda: self.org.events("unsubscribe"))
        self.assertEqual(self.org.events("unsubscribe")[0]["config"], {"api_key": "k"})


class Events(Case):
    def test_subscribing_and_unsubscribing_are_told_once_each(self):
        (event,) = self.org.events("subscribe")
        self.assertEqual((event["data"], event["config"]), ({}, {}))
        self.org.call("DELETE", f"/v1/orgs/{{oid}}/subscription/extension/{EXTENSION}")
        eventually("the event of the end", lambda: self.org.events("unsubscribe"))
        self.assertEqual(len(self.org.messages("event")), 2)
        self.assertEqual(self.org.errors(), [])


class Idempotency(Case):
    def test_a_repeat_under_one_key_is_delivered_once_and_other_data_refused(self):
        header = {"Idempotency-Key": "once"}
        first = self.org.request("echo", {"msg": "a"}, headers=header)
        again = self.org.request("echo", {"msg": "a"}, headers=header)
        other = self.org.request("echo", {"msg": "b"}, headers=header)
        self.assertEqual((first.status, again.status, other.status), (200, 200, 409))
        self.assertEqual(first.body, again.body)
        self.assertEqual(len(self.org.requests("echo")), 1)


class Messages(unittest.TestCase):
    def test_every_message_has_the_version_a_key_and_exactly_one_member(self):
        platform().organization("messages").subscribe()
        members = {"schema_request", "request", "event", "conf_validation", "error_report", "heartbeat"}
        for entry in platform().recorded():
            message = entry.get("message")
            if message is not None:
                self.assertEqual(message["version"], 20221218)
                self.assertNotEqual(message["idempotency_key"], "")
                self.assertEqual(len(members & message.keys()), 1, message)
                self.assertEqual(len(message), 3, message)
