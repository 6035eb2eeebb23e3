"""Credentials that are sent as they are, bodies, and what else httpbin sees of a request."""

import peers
from peers import Case, send

PART = {"name": "b", "value": "zwei\r\n", "contentType": "text/plain; charset=utf-8"}


class Httpbin(Case):
    def url(self, path):
        return peers.python_server("httpbin") + path

    def test_basic_lets_the_right_password_in_al_276(self):
        for user, password in [("acme", "pw"), ("acme", "with:colon"), ("Zoë", "grün")]:
            with self.subTest(user):
                auth = {"authType": "basic", "username": user, "password": password}
                exchange = send({"url": self.url(f"/basic-auth/{user}/{password}"), "auth": auth})
                self.assert_status(200, exchange)
                self.assertEqual(exchange.json(), {"authenticated": True, "user": user})
                auth["password"] += "1"
                self.assert_status(401, send({"url": self.url(f"/basic-auth/{user}/{password}"), "auth": auth}))

    def test_a_bearer_token_is_seen_al_278(self):
        auth = {"authType": "bearer", "token": "t0.k-e_n~+/="}
        self.assertEqual(send({"url": self.url("/bearer"), "auth": auth}).json(), {"authenticated": True, "token": "t0.k-e_n~+/="})
        self.assert_status(401, send({"url": self.url("/bearer")}))

    def test_an_api_key_is_seen_in_its_place_al_279_al_280(self):
        auth = {"authType": "api-key", "key": "x-key", "value": "a b&c=+ü"}
        headers = send({"url": self.url("/anything"), "auth": {**auth, "value": "a b"}}).json()["headers"]
        self.assertEqual(headers["X-Key"], "a b")
        exchange = send({"url": self.url("/anything?q=1"), "auth": {**auth, "addTo": "QUERY_PARAMS"}})
        self.assertEqual(exchange.json()["args"], {"q": "1", "x-key": "a b&c=+ü"})

    def test_a_form_and_a_multipart_body_are_read_as_they_were_meant_al_239_al_241_al_250_al_251(self):
        form = [["a", "1 2"], ["b+", "ä&="], ["a", ""]]
        exchange = send({"method": "POST", "url": self.url("/anything"), "body": {"form": form}})
        self.assertEqual(exchange.json()["form"], {"a": ["1 2", ""], "b+": "ä&="})
        parts = [{"name": 'a "quoted" ü', "value": "1"}, PART, {"name": "a", "value": ""}]
        exchange = send({"method": "POST", "url": self.url("/anything"), "body": {"multipart": parts}})
        self.assertEqual(exchange.json()["form"], {'a "quoted" ü': "1", "b": "zwei\r\n", "a": ""})

    def test_a_json_body_is_read_as_it_was_meant_al_234_al_235(self):
        for body in [{"json": {"ü": [1, None]}}, {"jsonText": '{"ü":[1,null] }'}]:
            seen = send({"method": "PUT", "url": self.url("/anything"), "body": body}).json()
            self.assertEqual(seen["json"], {"ü": [1, None]})
            self.assertEqual(seen["headers"]["Content-Type"], "application/json")

    def test_a_redirect_is_the_answer_al_217(self):
        exchange = send({"url": self.url("/redirect-to?url=http://127.0.0.1/&status_code=307")})
        self.assert_status(307, exchange)
        self.assertEqual(len(exchange.sent), 1)

    def test_any_status_is_an_answer_al_173(self):
        for status in [204, 304, 404, 418, 500, 503]:
            with self.subTest(status):
                self.assert_status(status, send({"url": self.url(f"/status/{status}")}))

    def test_a_user_agent_is_sent_where_the_request_has_none_al_157(self):
        self.assertEqual(send({"url": self.url("/user-agent")}).json(), {"user-agent": "Aletheia-Apps/1"})
        exchange = send({"url": self.url("/user-agent"), "headers": {"User-Agent": "own"}})
        self.assertEqual(exchange.json(), {"user-agent": "own"})
