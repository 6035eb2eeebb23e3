"""The sample extension once more, in Python, on LimaCharlie's own extension SDK (lcextension).

Serves on a free port of 127.0.0.1, which it prints. SCANNER_SECRET is what its messages are signed with.
"""

import os
import sys
import time

import lcextension as lc
from lcextension.metrics import Metric, MetricReport  # the package root does not have them
from werkzeug.serving import make_server

# Pages that a scan has after its first one, and bytes that each reads.
PAGES = 2
PAGE_BYTES = 4096

Types = lc.SchemaDataTypes


def action(members=None, requirements=()):
    fields = lc.SchemaObject(Fields=members or {}, Requirements=[list(any_of) for any_of in requirements])
    return lc.RequestSchema(ParameterDefinitions=fields)


def field(data_type, **options):
    return lc.SchemaElement(DataType=data_type, **options)


def log(line):
    print(line, file=sys.stderr, flush=True)


def metered(**skus):
    # Without a key of its own, a report counts once for each call.
    return MetricReport([Metric(sku, value) for sku, value in skus.items()], "")


class Scanner(lc.Extension):
    def init(self):
        target, page = field(Types.String), field(Types.Integer)
        self.configSchema = lc.SchemaObject(Fields={}, Requirements=[])
        self.requestSchema = lc.RequestSchemas()
        self.requestSchema.Actions = {
            "scan": action({"target": target}, [["target"]]),
            "scan_page": action({"target": target, "page": page}, [["target"], ["page"]]),
            "remind": action({"seconds": field(Types.Integer)}, [["seconds"]]),
            "reminded": action({"seconds": field(Types.Integer)}),
            "slow": action({"seconds": field(Types.Integer)}, [["seconds"]]),
            "large": action({"bytes": field(Types.Integer)}, [["bytes"]]),
            "fail": action(),
        }
        self.requiredEvents = ["subscribe", "unsubscribe", "update"]
        self.requestHandlers = {
            "scan": self.scan,
            "scan_page": self.scan_page,
            "remind": self.remind,
            "reminded": self.reminded,
            "slow": self.slow,
            "large": lambda sdk, data, conf, resources: lc.Response(data={"x": "y" * data["bytes"]}),
            "fail": lambda sdk, data, conf, resources: lc.Response(error="target is not valid", is_retriable=False),
        }
        self.eventHandlers = dict.fromkeys(self.requiredEvents, self.event)

    def validateConfig(self, sdk, conf):
        pass

    def handleError(self, oid, error):
        log("error report for %s" % oid)

    def _extRequestHandler(self, message):
        # The SDK does not tell a handler which event it is for.
        event = message.get("event") or {}
        if event:
            log("event %s for %s" % (event.get("event_name"), event.get("org", {}).get("oid")))
        return super()._extRequestHandler(message)

    def event(self, sdk, data, conf):
        return lc.Response(data={"status": "ready"})

    def scan(self, sdk, data, conf, resources):
        more = [lc.ContinuationRequest(1, "scan_page", {"target": data["target"], "page": 1})]
        answer = {"target": data["target"], "findings": 1, "pages_left": PAGES}
        return lc.Response(data=answer, continuations=more, metrics=metered(scans=1, bytes_scanned=PAGE_BYTES))

    def scan_page(self, sdk, data, conf, resources):
        target, page = data["target"], data["page"]
        log('scan of "%s", page %d' % (target, page))
        more = [lc.ContinuationRequest(1, "scan_page", {"target": target, "page": page + 1})] if page < PAGES else None
        answer = {"target": target, "page": page, "findings": 1, "pages_left": PAGES - page}
        return lc.Response(data=answer, continuations=more, metrics=metered(bytes_scanned=PAGE_BYTES))

    def remind(self, sdk, data, conf, resources):
        more = [lc.ContinuationRequest(data["seconds"], "reminded", {"seconds": data["seconds"]})]
        return lc.Response(data={"in": data["seconds"]}, continuations=more)

    def reminded(self, sdk, data, conf, resources):
        log("reminded after %d seconds" % data["seconds"])
        return lc.Response(data={})

    def slow(self, sdk, data, conf, resources):
        time.sleep(data["seconds"])
        return lc.Response(data={"slept": data["seconds"]})


def main():
    app = Scanner("scanner", os.environ["SCANNER_SECRET"]).getApp()
    server = make_server("127.0.0.1", 0, app, threaded=True)
    print("http://127.0.0.1:%d/" % server.server_port, flush=True)
    server.serve_forever()


if __name__ == "__main__":
    main()
