"""AWS Signature Version 4 (AL-312 to AL-325) against two verifiers: OpenStack Swift's S3 API, which has its own, and moto,
whose verifier is that of Amazon's library for Python."""

import functools
import json
import urllib.error
import urllib.parse
import urllib.request
import xml.etree.ElementTree as ElementTree

import boto3
import peers
from peers import Case, send

# What a key or a query may hold that is written in more than one way, written as AL-325 and AWS's rules want it.
KEYS = [
    "plain", "with%20space", "with%2Bplus", "p%C3%A4th", "%E2%82%AC", "a/b/c", "a//b", "~-._", "%21%27%28%29%2A",
    "a%3Ab%40c%2Cd%3Be%3Df%26g", "%25", "100%2525",
]  # fmt: skip
QUERIES = [
    "prefix=a%20b", "prefix=a%2Bb", "prefix=%C3%A4&max-keys=5", "max-keys=5&delimiter=%2F&prefix=", "prefix", "=x",
    "prefix=~-._%21%2A%27%28%29", "B=1&a=2&A=3", "",
]  # fmt: skip
# The same written in other ways, which a verifier has to bring into that form. moto does not.
OTHER_KEYS = ["it's(1)*!", "a+b", "a:b@c=$&,;", "a%2Fb", "a%2fb", "ä b", "a|b^c", "{a}[b]", "%7e%2d", "%c3%a4", 'a"b<c>']
OTHER_QUERIES = ["prefix=a+b", "prefix=a b", "prefix=ä/b:c", "prefix=it's(1)*!", "&&prefix=a=b", "prefix=%e4", "prefix=%zz%"]


class Swift(Case):
    """The S3 API of OpenStack Swift, in the headers and presigned. What is behind its checks is a stub."""

    def request(self, target, presigned=False, auth=None, **more):
        folder = peers.folder() / "swift"
        folder.mkdir(exist_ok=True)
        keys = {
            "authType": "aws-signature", "accessKey": "test:tester", "secretKey": "Circle-of-Life", "region": "eu-west-3",
            "serviceName": "s3", "addTo": "QUERY_PARAMS" if presigned else "HEADERS",
        }  # fmt: skip
        return {"url": peers.python_server("swift", folder) + target, "auth": {**keys, **(auth or {})}, **more}

    def each(self):
        for presigned in [False, True]:
            yield "presigned" if presigned else "headers", functools.partial(self.request, presigned=presigned)

    def test_objects_are_read_whatever_their_keys_al_312_al_314_al_318_al_319(self):
        for name, request in self.each():
            for key in KEYS + OTHER_KEYS:
                with self.subTest(f"{name} {key}"):
                    exchange = send(request(f"/bucket/{key}"))
                    self.assert_status(200, exchange)
                    seen = exchange.answer["bodyText"]
                    self.assertEqual(seen, "/v1/AUTH_test/bucket/" + urllib.parse.unquote(key))

    def test_queries_are_signed_as_they_are_sent_al_312_al_325(self):
        for name, request in self.each():
            for query in QUERIES + OTHER_QUERIES:
                with self.subTest(f"{name} {query}"):
                    self.assert_status(200, send(request(f"/bucket/key?{query}")))

    def test_bodies_are_written_and_their_hash_is_checked_al_316_al_317_al_321(self):
        for name, request in self.each():
            for body in [{"base64": "AAECA/8="}, "text", {"json": {"ü": 1}}]:
                with self.subTest(f"{name} {body}"):
                    self.assert_status(200, send(request("/bucket/key", method="PUT", body=body)))
        unsigned = {"x-amz-content-sha256": "UNSIGNED-PAYLOAD"}
        self.assert_status(200, send(self.request("/bucket/key", method="PUT", body="text", headers=unsigned)))
        wrong = {"x-amz-content-sha256": "0" * 64}
        self.assert_refused("XAmzContentSHA256Mismatch", 400, self.request("/bucket/key", method="PUT", body="text", headers=wrong))

    def test_headers_of_the_request_are_signed_or_left_out_al_322(self):
        headers = {"content-type": "text/plain", "user-agent": "own", "x-amz-meta-a": "  two   spaces ", "x-own": "1",
                   "accept": "*/*", "range": "bytes=0-1", "cache-control": "no-cache"}  # fmt: skip
        for name, request in self.each():
            with self.subTest(name):
                self.assert_status(200, send(request("/bucket/key", headers=headers)))

    def test_the_time_that_a_presigned_url_lives_is_kept_al_320(self):
        self.assert_status(200, send(self.request("/bucket/key?X-Amz-Expires=60", presigned=True)))
        request = self.request("/bucket/key?X-Amz-Expires=60", presigned=True)
        exchange = send(request, at="2026-01-02T03:04:05Z")
        self.assert_status(403, exchange)
        self.assertIn("Request has expired", exchange.answer["bodyText"])

    def test_a_session_token_is_signed_al_315_al_318(self):
        # Swift knows no sessions, but checks what is signed.
        for name, request in self.each():
            with self.subTest(name):
                self.assert_status(200, send(request("/bucket/key", auth={"serviceToken": "a+b/c=="})))

    def assert_refused(self, code, status, request):
        exchange = send(request)
        self.assert_status(status, exchange)
        self.assertEqual(ElementTree.fromstring(exchange.answer["bodyText"]).findtext("Code"), code)

    def test_what_is_signed_with_another_secret_or_for_another_region_is_refused_al_312(self):
        for name, request in self.each():
            with self.subTest(name):
                self.assert_refused("SignatureDoesNotMatch", 403, request("/bucket/key", auth={"secretKey": "circle-of-life"}))
                exchange = send(request("/bucket/key", auth={"region": "eu-west-1"}))
                self.assert_status(400, exchange)
                self.assertIn("the region 'eu-west-1' is wrong; expecting 'eu-west-3'", exchange.answer["bodyText"])

    def test_a_request_that_was_changed_on_its_way_is_refused_al_312(self):
        exchange = send(self.request("/bucket/key", presigned=True))
        for change in [("/bucket/key", "/bucket/kex"), ("X-Amz-Expires=86400", "X-Amz-Expires=86401")]:
            url = exchange.sent[0]["url"].replace(*change)
            with self.assertRaises(urllib.error.HTTPError) as refused:
                urllib.request.urlopen(url)
            with refused.exception as answer:
                self.assertEqual(answer.code, 403)
                self.assertIn(b"SignatureDoesNotMatch", answer.read())


TRUST = {"Version": "2012-10-17", "Statement": [{"Effect": "Allow", "Principal": {"AWS": "*"}, "Action": "sts:AssumeRole"}]}
ALL = json.dumps({"Version": "2012-10-17", "Statement": [{"Effect": "Allow", "Action": "*", "Resource": "*"}]})


@functools.cache
def moto():
    """Its URL, and a user and a role who may do everything."""
    # One for each call below: from the next request on, all are checked.
    url = peers.python_server("moto", INITIAL_NO_AUTH_ACTION_COUNT=5)
    iam = boto3.client(
        "iam", endpoint_url=url, region_name="us-east-1", aws_access_key_id="AKIA", aws_secret_access_key="any",
    )  # fmt: skip
    iam.create_user(UserName="peer")
    iam.put_user_policy(UserName="peer", PolicyName="all", PolicyDocument=ALL)
    role = iam.create_role(RoleName="peer", AssumeRolePolicyDocument=json.dumps(TRUST))["Role"]["Arn"]
    iam.put_role_policy(RoleName="peer", PolicyName="all", PolicyDocument=ALL)
    key = iam.create_access_key(UserName="peer")["AccessKey"]
    return url, {"accessKey": key["AccessKeyId"], "secretKey": key["SecretAccessKey"]}, role


class Moto(Case):
    """Signatures in the headers, for S3 and other services. moto does not check what is presigned."""

    def request(self, service, target="/", auth=None, **more):
        url, keys, _ = moto()
        auth = {"authType": "aws-signature", "region": "us-east-1", "serviceName": service, **keys, **(auth or {})}
        return {"url": url + target, "auth": auth, **more}

    def identity(self, auth=None):
        form = {"form": {"Action": "GetCallerIdentity", "Version": "2011-06-15"}}
        return send(self.request("sts", method="POST", body=form, auth=auth))

    def assume(self):
        form = {"Action": "AssumeRole", "Version": "2011-06-15", "RoleArn": moto()[2], "RoleSessionName": "a+session"}
        exchange = send(self.request("sts", method="POST", body={"form": form}))
        self.assert_status(200, exchange)
        found = {element.tag.split("}")[-1]: element.text for element in ElementTree.fromstring(exchange.answer["bodyText"]).iter()}
        return {"accessKey": found["AccessKeyId"], "secretKey": found["SecretAccessKey"], "serviceToken": found["SessionToken"]}

    def test_services_take_the_signature_and_none_with_another_secret_al_312_al_314(self):
        exchange = self.identity()
        self.assert_status(200, exchange)
        self.assertIn(":user/peer", exchange.answer["bodyText"])
        exchange = self.identity({"secretKey": "another"})
        self.assert_status(403, exchange)
        self.assertIn("SignatureDoesNotMatch", exchange.answer["bodyText"])

    def test_a_session_is_let_in_with_its_token_and_not_without_al_315(self):
        session = self.assume()
        exchange = self.identity(session)
        self.assert_status(200, exchange)
        self.assertIn(":assumed-role/peer/a+session", exchange.answer["bodyText"])
        self.assert_status(403, self.identity({**session, "serviceToken": ""}))
        self.assert_status(403, self.identity({**session, "secretKey": "another"}))

    def test_a_service_of_json_takes_the_signature_al_312(self):
        headers = {"x-amz-target": "DynamoDB_20120810.ListTables", "content-type": "application/x-amz-json-1.0"}
        exchange = send(self.request("dynamodb", method="POST", headers=headers, body={"jsonText": '{"Limit": 3}'}))
        self.assert_status(200, exchange)
        self.assertEqual(exchange.json(), {"TableNames": []})

    def test_objects_are_written_and_read_al_316_al_325(self):
        self.assert_status(200, send(self.request("s3", "/bucket", method="PUT")))
        for session in [{}, self.assume()]:
            for key in KEYS:
                with self.subTest(f"{key} {bool(session)}"):
                    target = f"/bucket/{key}"
                    self.assert_status(200, send(self.request("s3", target, session, method="PUT", body="of " + key)))
                    exchange = send(self.request("s3", target, session))
                    self.assert_status(200, exchange)
                    self.assertEqual(exchange.answer["bodyText"], "of " + key)
        exchange = send(self.request("s3", "/bucket/plain", {"secretKey": "another"}))
        self.assert_status(403, exchange)
        self.assertIn("SignatureDoesNotMatch", exchange.answer["bodyText"])
        # Swift keeps one value of each name, and so refuses names that repeat; AWS signs them all.
        for query in QUERIES + ["prefix=&prefix=b", "b=2&a=1&a=0"]:
            with self.subTest(query):
                self.assert_status(200, send(self.request("s3", f"/bucket?{query}")))
