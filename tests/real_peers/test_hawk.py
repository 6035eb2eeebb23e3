"""Hawk (AL-326 to AL-344) against a server that checks requests and signs answers with @hapi/hawk, its first library."""

import time

import peers
from peers import Case, send, send_all

KEY = "werxhqb98rpaxn39848xrunpaw3489ruxnpa98w4rxn"


def request(path="/", algorithm="sha256", **more):
    auth = {"authType": "hawk", "authId": f"of-{algorithm}", "authKey": KEY, "algorithm": algorithm}
    rest = {name: more.pop(name) for name in ["method", "body", "headers"] if name in more}
    return {"url": peers.hawk() + path, "auth": {**auth, **more}, **rest}


class Requests(Case):
    """What the library says of our requests."""

    def test_each_algorithm_is_let_in_and_the_wrong_key_is_not_al_326(self):
        for algorithm in ["sha256", "sha1"]:
            with self.subTest(algorithm):
                self.assert_status(200, send(request(algorithm=algorithm)))
                self.assert_status(401, send(request(algorithm=algorithm, authKey=KEY + "1")))

    def test_the_method_and_the_target_are_covered_as_they_are_sent_al_328(self):
        targets = ["/", "/a/b?c=1&d=%20", "/p%C3%A4th%20and+plus?q=a+b%2B", "/?", "/a//b?x=%7e&y", "/a;b=c,d?(e)'f'!*"]
        methods = ["GET", "POST", "PUT", "PATCH", "DELETE"]
        requests = [request(target, method=method) for target in targets for method in methods]
        for exchange in send_all(requests):
            with self.subTest(exchange.sent[0]["url"]):
                self.assert_status(200, exchange)
                self.assertTrue(exchange.sent[0]["url"].endswith(exchange.json()["resource"]))

    def test_a_payload_is_hashed_over_its_media_type_and_bytes_al_330_al_331(self):
        bodies = [
            ({"json": {"name": "Zoë"}}, {}),
            ({"form": [["a", "1 2"], ["a", "ä"]]}, {}),
            ({"base64": "AAECA/8="}, {"content-type": "Application/X-Own; charset=utf-8"}),
            ({"base64": "AAECA/8="}, {}),
            ("plain text", {"content-type": "Text/Plain ;charset=utf-8"}),
            ("plain text", {}),
            ({"multipart": [{"name": "a", "value": "1\r\n"}]}, {}),
        ]
        for body, headers in bodies:
            with self.subTest(f"{body} {headers}"):
                exchange = send(request(method="POST", body=body, headers=headers, includePayloadHash=True))
                self.assert_status(200, exchange)
                self.assertIn('hash="', exchange.header("authorization"))

    def test_an_empty_payload_is_hashed_too_al_332(self):
        for more in [{}, {"method": "POST", "body": ""}, {"headers": {"content-type": "text/plain"}}]:
            with self.subTest(more):
                exchange = send(request(includePayloadHash=True, **more))
                self.assert_status(200, exchange)
                self.assertIn('hash="', exchange.header("authorization"))

    def test_ext_app_and_dlg_are_covered_al_333_al_334(self):
        for more in [{"ext": "some-app-ext-data"}, {"app": "an-app"}, {"app": "an-app", "dlg": "by it"},
                     {"ext": " !#$%&'()*+,-./:;<=>?@[]^_`{|}~", "app": "a", "dlg": "d"}]:  # fmt: skip
            with self.subTest(more):
                exchange = send(request("/a", **more))
                self.assert_status(200, exchange)
                self.assertEqual(exchange.json(), {**exchange.json(), **more})

    def test_a_nonce_that_was_used_and_an_old_timestamp_are_refused_by_the_server_al_337(self):
        now = int(time.time())
        fixed = request(nonce="j4h3g2", timestamp=now)
        self.assert_status(200, send(fixed))
        self.assert_status(401, send(fixed))
        self.assert_status(401, send(request(timestamp=now - 3600)))


class Answers(Case):
    """What we say of the library's answers."""

    def test_an_answer_that_the_library_signed_passes_al_338_al_339_al_340(self):
        for more in [{}, {"algorithm": "sha1"}, {"app": "an-app", "dlg": "by it", "ext": "e"}]:
            with self.subTest(more):
                exchange = send(request("/a?b=c", method="POST", body="x", includePayloadHash=True, **more))
                self.assert_status(200, exchange)
                self.assertIn('hash="', exchange.answer["headers"]["server-authorization"])
        self.assert_status(200, send(request("/no-hash")))

    def test_an_answer_without_the_header_passes_al_344(self):
        exchange = send(request("/unsigned"))
        self.assert_status(200, exchange)
        self.assertNotIn("server-authorization", exchange.answer["headers"])

    def test_an_answer_that_was_tampered_with_is_an_error_al_341_al_342_al_343(self):
        errors = {
            "/garbled": "hawk auth: the vendor's server-authorization cannot be read",
            "/tampered-mac": "hawk auth: the vendor's server-authorization does not verify",
            "/tampered-body": "hawk auth: the vendor's answer does not match the hash in its server-authorization",
        }
        for path, error in errors.items():
            with self.subTest(path):
                self.assertEqual(send(request(path)).answer, {"error": error, "network": "unknown"})
