"""Signatures over the request (AL-385 to AL-400) that the library of Standard Webhooks verifies."""

import base64
import json
import secrets
import time

from peers import Case, signed
from standardwebhooks import Webhook, WebhookVerificationError


class StandardWebhooks(Case):
    """Base64 HMAC-SHA256 of `id.timestamp.body` under the decoded secret (AL-420, here on the sender's side)."""

    def sign(self, secret, body, **more):
        at = str(int(time.time()))
        message = "msg_" + secrets.token_hex(8)
        request = {
            "method": "POST", "url": "https://api.example.com/hook", "body": body,
            "headers": {"webhook-id": message, "webhook-timestamp": at},
            "sign": {
                "header": "webhook-signature", "algorithm": "sha256", "encoding": "base64", "keyEncoding": "base64",
                "key": {"text": secret}, "prefix": f"{message}.{at}.",
            },
            **more,
        }  # fmt: skip
        exchange = signed(request)
        headers = dict(exchange.sent[0]["headers"])
        # The version of the signature, which the module would have to write and cannot: `sign` sets the header whole.
        headers["webhook-signature"] = "v1," + headers["webhook-signature"]
        return headers, exchange.body()

    def test_the_library_verifies_what_was_signed_al_385_al_388_al_390_al_391_al_392_al_400_al_420(self):
        bodies = [{"json": {"type": "made", "data": {"name": "Zoë"}}}, {"jsonText": '{"n":12345678901234567890.10 }'}, "[]"]
        for _ in range(8):
            secret = "whsec_" + base64.b64encode(secrets.token_bytes(24 + secrets.randbelow(40))).decode()
            for body in bodies:
                with self.subTest(f"{secret} {body}"):
                    headers, sent = self.sign(secret, body)
                    self.assertEqual(Webhook(secret).verify(sent, headers), json.loads(sent))

    def test_the_library_refuses_another_secret_body_and_id_al_385(self):
        secret = "whsec_" + base64.b64encode(b"k" * 32).decode()
        headers, sent = self.sign(secret, {"json": {"a": 1}})
        other = "whsec_" + base64.b64encode(b"l" * 32).decode()
        for secret, body, headers in [
            (other, sent, headers), (secret, sent + b" ", headers), (secret, sent, {**headers, "webhook-id": "msg_1"}),
        ]:  # fmt: skip
            with self.assertRaises(WebhookVerificationError):
                Webhook(secret).verify(body, headers)
