"""JSON Web Tokens (AL-345 to AL-361), verified by PyJWT under keys of cryptography."""

import base64
import functools
import secrets
import time

import jwt
from cryptography.hazmat.primitives.asymmetric import ec, rsa
from cryptography.hazmat.primitives.serialization import BestAvailableEncryption, Encoding, NoEncryption, PrivateFormat
from peers import Case, send, signed

CURVES = {"ES256": ec.SECP256R1, "ES384": ec.SECP384R1, "ES512": ec.SECP521R1}


@functools.cache
def rsa_key(bits=2048):
    return rsa.generate_private_key(65537, bits)


@functools.cache
def ec_key(algorithm):
    return ec.generate_private_key(CURVES[algorithm]())


def pem(key, form, encryption=None):
    return key.private_bytes(Encoding.PEM, form, encryption or NoEncryption()).decode()


def request(**auth):
    return {"url": "https://api.example.com/a?b=c", "auth": {"authType": "jwt", **auth}}


def token_of(exchange):
    scheme, token = exchange.header("authorization").split(" ")
    assert scheme == "Bearer"
    return token


class Tokens(Case):
    def check(self, public, algorithm, **auth):
        """Sends a token, and answers its claims once the library has verified it."""
        claims = {"iss": "annex", "aud": "peer", "iat": "now", "nbf": "-30s", "exp": "5m", "deep": {"ü": [1, None, "5m"]}}
        exchange = signed(request(algorithm=algorithm, payload=claims, jwtHeaders={"kid": "k1", "typ": "JWT"}, **auth))
        token = token_of(exchange)
        self.assertEqual(jwt.get_unverified_header(token), {"alg": algorithm, "kid": "k1", "typ": "JWT"})
        found = jwt.decode(token, public, algorithms=[algorithm], audience="peer", issuer="annex")
        self.assertEqual(found["deep"], claims["deep"])
        self.assertAlmostEqual(found["iat"], time.time(), delta=60)
        self.assertEqual([found["nbf"] - found["iat"], found["exp"] - found["iat"]], [-30, 300])
        return token

    def test_tokens_under_a_secret_verify_al_347_al_352_al_353_al_354_al_355_al_357(self):
        for algorithm in ["HS256", "HS384", "HS512"]:
            with self.subTest(algorithm):
                secret = secrets.token_urlsafe(64) + "ü"
                token = self.check(secret, algorithm, secret=secret)
                with self.assertRaises(jwt.InvalidSignatureError):
                    jwt.decode(token, secret + "1", algorithms=[algorithm], audience="peer")

    def test_a_secret_in_base64_is_decoded_al_348_al_349(self):
        secret = bytes([0xFB, 0xFF, 0xFE]) + secrets.token_bytes(64)
        for encode in [base64.b64encode, base64.urlsafe_b64encode]:
            self.check(secret, "HS512", secret=encode(secret).decode(), isSecretBase64Encoded=True)

    def test_tokens_under_an_rsa_key_verify_al_350_al_359(self):
        key = rsa_key()
        for algorithm in ["RS256", "RS384", "RS512", "PS256", "PS384", "PS512"]:
            for form in [PrivateFormat.PKCS8, PrivateFormat.TraditionalOpenSSL]:
                with self.subTest(f"{algorithm} {form}"):
                    self.check(key.public_key(), algorithm, privateKey=pem(key, form))

    def test_a_larger_rsa_key_signs_too_al_350(self):
        key = rsa_key(4096)
        for algorithm in ["RS256", "PS512"]:
            self.check(key.public_key(), algorithm, privateKey=pem(key, PrivateFormat.PKCS8))

    def test_tokens_under_a_key_on_a_curve_verify_al_351_al_359(self):
        for algorithm in CURVES:
            key = ec_key(algorithm)
            for form in [PrivateFormat.PKCS8, PrivateFormat.TraditionalOpenSSL]:
                with self.subTest(f"{algorithm} {form}"):
                    self.check(key.public_key(), algorithm, privateKey=pem(key, form))

    def test_a_token_in_the_query_verifies_al_358(self):
        exchange = signed(request(payload={"a": 1}, secret="s" * 32, addTo="QUERY_PARAMS"))
        token = exchange.sent[0]["url"].removeprefix("https://api.example.com/a?b=c&token=")
        self.assertEqual(jwt.decode(token, "s" * 32, algorithms=["HS256"]), {"a": 1})

    def test_keys_that_may_not_sign_are_refused_al_350_al_351_al_360(self):
        encrypted = BestAvailableEncryption(b"password")
        keys = {
            "1024 bits": ("RS256", pem(rsa_key(1024), PrivateFormat.PKCS8)),
            "another curve": ("ES256", pem(ec_key("ES384"), PrivateFormat.PKCS8)),
            "encrypted PKCS #8": ("RS256", pem(rsa_key(), PrivateFormat.PKCS8, encrypted)),
            "encrypted PKCS #1": ("RS256", pem(rsa_key(), PrivateFormat.TraditionalOpenSSL, encrypted)),
            "of another kind": ("RS256", pem(ec_key("ES256"), PrivateFormat.PKCS8)),
        }
        for name, (algorithm, key) in keys.items():
            with self.subTest(name):
                exchange = send(request(algorithm=algorithm, privateKey=key, payload={}), answers=[{"status": 200}])
                self.assertEqual(exchange.sent, [])
                self.assertEqual(set(exchange.answer), {"error"})
                self.assertTrue(exchange.answer["error"].startswith("jwt auth: "), exchange.answer)
