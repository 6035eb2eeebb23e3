"""An extension as people write them, on LimaCharlie's own SDK, with an action for each thing a platform is asked for.

Serves on a free port of 127.0.0.1, which it prints. What it is told comes from its environment:

LC_SHARED_SECRET  signs its messages
EXT_RECORDS       the file it appends every message to that passed the SDK's check of the signature, one JSON a line
ANNEX_URL         where the SDK's client of the platform is pointed
"""

import json
import os
import sys
import threading
import time

import lcextension as lc
import limacharlie
from lcextension.metrics import Metric, MetricReport  # the package root does not have them
from werkzeug.serving import make_server

NAME = "conf-ext"

Types = lc.SchemaDataTypes


def fields(members, requirements=()):
    return lc.SchemaObject(Fields=members, Requirements=[list(any_of) for any_of in requirements])


def action(members=None, requirements=(), **options):
    return lc.RequestSchema(ParameterDefinitions=fields(members or {}, requirements), **options)


def field(data_type, **options):
    return lc.SchemaElement(DataType=data_type, **options)


def answer(**members):
    """A handler that always answers so."""
    return lambda sdk, data, conf, resources: lc.Response(**members)


class ConfExt(lc.Extension):
    def init(self):
        self._records = os.environ["EXT_RECORDS"]
        self._records_lock = threading.Lock()
        integer, text = Types.Integer, Types.String
        self.configSchema = fields(
            {"api_key": field(Types.Secret), "limit": field(integer, DefaultValue=5)}, [["api_key"]]
        )
        self.requestSchema = lc.RequestSchemas()
        self.requestSchema.Actions = {
            "echo": action(
                {
                    "msg": field(text),
                    "n": field(integer, DefaultValue=3),
                    "key": field(Types.Secret),
                    "tags": field(Types.Tag, IsList=True),
                    "cfg": field(Types.Object, ObjectSchema=fields({"a": field(Types.Boolean)})),
                },
                [["msg"]],
            ),
            "continue": action({"steps": field(integer)}),
            "fanout": action({"n": field(integer), "first_delay": field(integer, DefaultValue=1)}),
            "metered": action({"skus": field(integer), "value": field(integer), "key": field(text)}),
            "sleep": action({"sec": field(integer)}),
            "big": action({"bytes": field(integer)}),
            "leak": action({"key": field(Types.Secret)}),
            "whoami": action({}, IsImpersonated=True),
            "provision": action(),
            "deprovision": action(),
            "send": action({"event": field(Types.Object)}),
            "api": action(),
            "fail_default": action(),
            "fail_retriable": action(),
            "fail_permanent": action(),
            "boom": action(),
            "unhandled": action(),
        }
        self.requiredEvents = ["subscribe", "unsubscribe", "update"]
        self.requestHandlers = {
            "echo": self.echo,
            "continue": self.go_on,
            "fanout": self.fan_out,
            "metered": self.meter,
            "sleep": self.sleep,
            "big": lambda sdk, data, conf, resources: lc.Response(data={"x": "y" * data["bytes"]}),
            "leak": lambda sdk, data, conf, resources: lc.Response(
                error="the vendor refuses %s and %s" % (data["key"], conf["api_key"]), is_retriable=False
            ),
            "whoami": lambda sdk, data, conf, resources: lc.Response(data=sdk.whoAmI()),
            "provision": self.provision,
            "deprovision": self.deprovision,
            "send": self.send,
            "api": self.api,
            "fail_default": answer(error="vendor API timed out"),
            "fail_retriable": answer(error="vendor API timed out", is_retriable=True),
            "fail_permanent": answer(error="api_key is not valid", is_retriable=False),
            "boom": lambda sdk, data, conf, resources: 1 // 0,
        }
        self.eventHandlers = dict.fromkeys(self.requiredEvents, self.handle_event)

    def _extRequestHandler(self, message):
        self.record({"at": time.time(), "message": message})
        return super()._extRequestHandler(message)

    def record(self, entry):
        with self._records_lock, open(self._records, "a", encoding="utf-8") as records:
            records.write(json.dumps(entry) + "\n")

    def validateConfig(self, sdk, conf):
        if not conf.get("api_key"):
            raise Exception("api_key is required")

    def handleError(self, oid, error):
        self.record({"at": time.time(), "handled_error": {"oid": oid, "error": error}})

    def handle_event(self, sdk, data, conf):
        return lc.Response(data={"seen": data, "conf": conf})

    def echo(self, sdk, data, conf, resources):
        seen = {"data": data, "conf": conf, "resources": resources, "oid": sdk._oid}
        return lc.Response(data=seen)

    def go_on(self, sdk, data, conf, resources):
        left = data.get("steps", 0)
        again = [lc.ContinuationRequest(0, "continue", {"steps": left - 1})] if left else None
        return lc.Response(data={"left": left}, continuations=again)

    def fan_out(self, sdk, data, conf, resources):
        children = [
            lc.ContinuationRequest(data["first_delay"] if i == 0 else 1, "echo", {"msg": "child %d" % i})
            for i in range(data["n"])
        ]
        return lc.Response(data={"queued": len(children)}, continuations=children)

    def meter(self, sdk, data, conf, resources):
        metrics = [Metric("sku%d" % i, data.get("value", 1)) for i in range(data["skus"])]
        if "value" in data and data["value"] < 0:
            metrics.append(Metric("positive", 1))
        return lc.Response(data={"ok": True}, metrics=MetricReport(metrics, data["key"]))

    def sleep(self, sdk, data, conf, resources):
        time.sleep(data["sec"])
        return lc.Response(data={"slept": data["sec"]})

    # What follows calls the platform from inside a handler, with the token that came with the message.

    def provision(self, sdk, data, conf, resources):
        self.create_extension_adapter(sdk, {"event_type_path": "kind"})
        return lc.Response(data={"keys": sdk.get_installation_keys()})

    def deprovision(self, sdk, data, conf, resources):
        self.delete_extension_adapter(sdk)
        self.delete_extension_adapter(sdk)  # a repeat is fine
        return lc.Response(data={"keys": sdk.get_installation_keys()})

    def send(self, sdk, data, conf, resources):
        self.send_to_webhook_adapter(sdk, data["event"])
        return lc.Response(data={"sent": True})

    def get_adapter_client(self, manager):
        client = super().get_adapter_client(manager)
        # The SDK posts to https only; the platform under test has no certificate.
        client.url = client.url.replace("https://", "http://", 1)
        return client

    def api(self, sdk, data, conf, resources):
        secrets = limacharlie.Hive(sdk, "secret")
        secrets.set(limacharlie.HiveRecord("from-the-handler", {"data": {"secret": "one"}}))
        record = secrets.get("from-the-handler")
        record.data = {"secret": "two"}
        secrets.set(record)
        metadata = secrets.getMetadata("from-the-handler")
        called = limacharlie.Extension(sdk).request(NAME, "echo", {"msg": "from the handler"})
        return lc.Response(
            data={
                "who": sdk.whoAmI(),
                "may_set_secrets": sdk.testAuth(["secret.set"]),
                "may_create_keys": sdk.testAuth(["apikey.ctrl"]),
                "secret": secrets.get("from-the-handler").data,
                "metadata_data": metadata.data,
                "called": called,
            }
        )


def main():
    # This version of the library has no setting for it.
    manager = sys.modules["limacharlie.Manager"]
    manager.ROOT_URL = os.environ["ANNEX_URL"]
    manager.API_TO_JWT_URL = os.environ["ANNEX_URL"] + "/jwt"
    app = ConfExt(NAME, os.environ["LC_SHARED_SECRET"]).getApp()
    server = make_server("127.0.0.1", 0, app, threaded=True)
    print("http://127.0.0.1:%d/" % server.server_port, flush=True)
    server.serve_forever()


if __name__ == "__main__":
    main()
