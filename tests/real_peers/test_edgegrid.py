"""Akamai EdgeGrid (AL-363 to AL-380): the same header as Akamai's own client makes. There is no server to install."""

import base64

import requests
from akamai.edgegrid.edgegrid import EdgeGridAuthHeaders
from peers import Case, signed

CLIENT_TOKEN, ACCESS_TOKEN = "akab-client-token-xxx-xxxxxxxxxxxxxxxx", "akab-access-token-xxx-xxxxxxxxxxxxxxxx"
CLIENT_SECRET = "xxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxx="
NONCE, TIMESTAMP = "nonce-xx-xxxx-xxxx-xxxx-xxxxxxxxxxxx", "20140321T19:34:21+0000"


class EdgeGrid(Case):
    def check(self, url="https://api.example.com/", method="GET", body=b"", headers=None, sign="", most=None):
        auth = {
            "authType": "akamai-eg", "accessToken": ACCESS_TOKEN, "clientToken": CLIENT_TOKEN,
            "clientSecret": CLIENT_SECRET, "headersToSign": sign, "nonce": NONCE, "timestamp": TIMESTAMP,
        }  # fmt: skip
        if most is not None:
            auth["maxBodySize"] = most
        request = {"method": method, "url": url, "headers": headers or {}, "auth": auth}
        if body:
            request["body"] = {"base64": base64.b64encode(body).decode()}
        ours = signed(request).header("authorization")
        theirs = EdgeGridAuthHeaders(
            CLIENT_TOKEN, CLIENT_SECRET, ACCESS_TOKEN, headers_to_sign=[name for name in sign.split(",") if name],
            **({} if most is None else {"max_body": most}),
        )  # fmt: skip
        prepared = requests.Request(method, url, data=body).prepare()
        # As they are sent: the library for requests would write some of it in another way.
        prepared.url = url
        prepared.headers.update(headers or {})
        self.assertEqual(ours, theirs.make_auth_header(prepared, TIMESTAMP, NONCE))

    def test_targets_al_363_al_365_al_366_al_367_al_368(self):
        targets = ["/", "/testapi/v1/t1?p1=1&p2=2", "/a%20b/%C3%A4?q=%20+%2B", "/a;b=1/c;d?e;f", "/a//b?=", "/x?%7e=~"]
        for target in targets:
            for origin in ["https://api.example.com", "http://api.example.com", "https://api.example.com:8443"]:
                with self.subTest(origin + target):
                    self.check(origin + target)

    def test_bodies_al_372_al_373_al_374(self):
        for method in ["POST", "PUT", "PATCH"]:
            for body in [b"", b"datadatadata", bytes(range(256)), b"d" * 131_072, b"d" * 131_073]:
                with self.subTest(f"{method} {len(body)}"):
                    self.check(method=method, body=body)
        for most in [0, 1, 11, 12, 13]:
            with self.subTest(most):
                self.check(method="POST", body=b"datadatadata", most=most)

    def test_headers_in_the_order_that_was_asked_for_al_369_al_370_al_371(self):
        headers = {"X-Test1": "test-simple-header", "x-test2": '"  test-header  with   spaces "', "X-Test3": " a\t b "}
        for sign in ["x-test1", "X-Test2,x-test1", "x-test3,x-none,x-test2", "x-none"]:
            with self.subTest(sign):
                self.check(headers=headers, sign=sign)
