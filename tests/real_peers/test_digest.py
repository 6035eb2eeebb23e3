"""Digest (AL-281 to AL-309) against Apache httpd, lighttpd, httpbin and Flask-DigestAuth."""

import functools
import hashlib
import os
import pwd

import peers
from peers import PASSWORD, USER, Case, send

APACHE = """
ServerRoot {folder}
ServerName 127.0.0.1
Listen 127.0.0.1:{port}
PidFile {folder}/apache.pid
ErrorLog /dev/stderr
LoadModule mpm_event_module {modules}/mod_mpm_event.so
LoadModule authn_core_module {modules}/mod_authn_core.so
LoadModule authn_file_module {modules}/mod_authn_file.so
LoadModule authz_core_module {modules}/mod_authz_core.so
LoadModule authz_user_module {modules}/mod_authz_user.so
LoadModule auth_digest_module {modules}/mod_auth_digest.so
{user}
DefaultRuntimeDir {folder}
Mutex default:{folder}
StartServers 1
ThreadsPerChild 8
MaxRequestWorkers 8
DocumentRoot {files}
<Location />
  AuthType Digest
  AuthName peers
  AuthDigestProvider file
  AuthUserFile {folder}/users.md5
  Require valid-user
</Location>
"""

LIGHTTPD = """
server.document-root = "{files}"
server.bind = "127.0.0.1"
server.port = {port}
{user}
server.modules = ("mod_auth", "mod_authn_file")
auth.backend = "htdigest"
"""

LIGHTTPD_FOLDER = """
$HTTP["url"] =~ "^/{name}/" {{
  auth.backend.htdigest.userfile = "{folder}/users.{hash}"
  auth.require = ("" => (
    "method" => "digest", "realm" => "peers", "algorithm" => "{algorithm}", "require" => "valid-user", {more}
  ))
}}
"""


def htdigest(folder):
    """A user with each hash, as Apache and lighttpd read them; lighttpd finds a hashed name in a column of its own."""
    name = hashlib.sha256(f"{USER}:peers".encode()).hexdigest()
    # A file for each: lighttpd tells the two hashes of 256 bits apart by nothing.
    for algorithm in ["md5", "sha256", "sha512_256"]:
        secret = hashlib.new(algorithm, f"{USER}:peers:{PASSWORD}".encode()).hexdigest()
        more = f":{name}" if algorithm == "sha256" else ""
        (folder / f"users.{algorithm}").write_text(f"{USER}:peers:{secret}{more}\n")


@functools.cache
def apache():
    folder, files = peers.folder(), peers.served_files()
    htdigest(folder)

    def configure(port):
        nobody = pwd.getpwnam("nobody")
        user = f"User #{nobody.pw_uid}\nGroup #{nobody.pw_gid}" if os.geteuid() == 0 else ""
        modules = peers.system("usr/lib/apache2/modules")
        path = folder / "apache.conf"
        path.write_text(APACHE.format(folder=folder, files=files, port=port, modules=modules, user=user))
        program = peers.system("usr/sbin/apache2")
        return [program, "-f", path, "-D", "FOREGROUND"], peers.system_environment()

    return peers.start_on_free_port("apache", configure)


@functools.cache
def lighttpd():
    folder, files = peers.folder(), peers.served_files()
    htdigest(folder)
    folders = {
        "md5": ("MD5", "md5", ""), "sha-256": ("SHA-256", "sha256", ""),
        "sha-512-256": ("SHA-512-256", "sha512_256", ""), "all": ("SHA-512-256|SHA-256|MD5", "sha512_256", ""),
        "userhash": ("SHA-256", "sha256", '"userhash" => "enable"'),
    }  # fmt: skip

    def configure(port):
        user = 'server.username = "nobody"' if os.geteuid() == 0 else ""
        text = LIGHTTPD.format(folder=folder, files=files, port=port, user=user)
        for name, (algorithm, hash, more) in folders.items():
            text += LIGHTTPD_FOLDER.format(name=name, algorithm=algorithm, hash=hash, folder=folder, more=more)
        path = folder / "lighttpd.conf"
        path.write_text(text)
        program, modules = peers.system("usr/sbin/lighttpd"), peers.system("usr/lib/lighttpd")
        return [program, "-D", "-f", path, "-m", modules], peers.system_environment()

    return peers.start_on_free_port("lighttpd", configure)


def digest(password=PASSWORD, username=USER):
    return {"authType": "digest", "username": username, "password": password}


def request(url, password=PASSWORD, **more):
    return {"url": url, "auth": digest(password), **more}


class Apache(Case):
    """mod_auth_digest: MD5 with qop auth, which is all it has."""

    def test_the_right_password_is_let_in_al_281_al_284_al_286_al_292(self):
        exchange = send(request(apache() + "/md5/file.txt"))
        self.assert_status(200, exchange)
        self.assertEqual(exchange.answer["bodyText"], "for users of md5")
        self.assertEqual(len(exchange.sent), 2)
        self.assertNotIn("authorization", exchange.sent[0]["headers"])
        self.assertIn("qop=auth", exchange.header("authorization"))

    def test_a_wrong_password_is_the_401_after_two_requests_al_308(self):
        exchange = send(request(apache() + "/md5/file.txt", "circle of life"))
        self.assert_status(401, exchange)
        self.assertEqual(len(exchange.sent), 2)

    def test_the_target_that_is_hashed_is_the_one_that_is_sent_al_283(self):
        for target in ["/md5/p%C3%A4th%20and+plus.txt", "/md5/file.txt?a=1&b=%20+&c", "/md5/file.txt?", "/md5//file.txt"]:
            with self.subTest(target):
                self.assert_status(200, send(request(apache() + target)))

    def test_a_head_request_is_let_in(self):
        exchange = send(request(apache() + "/md5/file.txt", method="HEAD"))
        self.assert_status(200, exchange)
        self.assertEqual(exchange.answer["bodyText"], "")


class Lighttpd(Case):
    """mod_auth: SHA-256 and SHA-512-256, several challenges, hashed names."""

    def test_each_algorithm_lets_the_right_password_in_and_no_other_al_284(self):
        for name in ["md5", "sha-256", "sha-512-256"]:
            with self.subTest(name):
                exchange = send(request(f"{lighttpd()}/{name}/file.txt"))
                self.assert_status(200, exchange)
                self.assertIn(f"algorithm={name.upper()}", exchange.header("authorization"))
                self.assert_status(401, send(request(f"{lighttpd()}/{name}/file.txt", "wrong")))

    def test_of_several_challenges_the_first_is_answered_al_289(self):
        exchange = send(request(lighttpd() + "/all/file.txt"))
        self.assert_status(200, exchange)
        self.assertIn("algorithm=SHA-512-256", exchange.header("authorization"))

    def test_a_name_is_sent_hashed_where_the_server_asks_for_it_al_293(self):
        exchange = send(request(lighttpd() + "/userhash/file.txt"))
        self.assert_status(200, exchange)
        self.assertIn("userhash=true", exchange.header("authorization"))
        self.assertNotIn(USER, exchange.header("authorization"))

    def test_targets_with_escapes_are_let_in_al_283(self):
        self.assert_status(200, send(request(lighttpd() + "/sha-256/p%C3%A4th%20and+plus.txt?q=%2B+&%20")))


class Httpbin(Case):
    """SHA-256, auth-int, stale nonces, cookies. httpbin fails on a target with a query, and knows SHA-512."""

    def url(self, *parts):
        return "/".join([peers.python_server("httpbin"), "digest-auth", *parts])

    def test_each_algorithm_and_qop_al_284_al_286_al_287_al_291(self):
        for algorithm in ["MD5", "SHA-256"]:
            for qop in ["auth", "auth-int"]:
                with self.subTest(f"{algorithm} {qop}"):
                    exchange = send(request(self.url(qop, USER, "secret", algorithm), "secret"))
                    self.assert_status(200, exchange)
                    self.assertEqual(exchange.json(), {"authenticated": True, "user": USER})
                    self.assert_status(401, send(request(self.url(qop, USER, "secret", algorithm), "Secret")))

    def test_a_challenge_without_qop_is_answered_al_288(self):
        self.assert_status(200, send(request(self.url("none", USER, "secret", "SHA-256"), "secret")))

    def test_an_algorithm_that_nobody_knows_is_an_error_al_309_al_194(self):
        exchange = send(request(self.url("auth", USER, "secret", "SHA-512"), "secret"))
        self.assertEqual(set(exchange.answer), {"error"})
        self.assertTrue(exchange.answer["error"].startswith("digest auth: the vendor's challenge cannot be answered: "))

    def test_cookies_of_the_challenge_are_carried_al_295_al_296(self):
        url = self.url("auth", USER, "secret", "MD5", "7")
        exchange = send(request(url, "secret", headers={"cookie": "own=1"}))
        self.assert_status(200, exchange)
        self.assertEqual(exchange.header("cookie"), "own=1; stale_after=7; fake=fake_value")
        # httpbin counts down what the cookie says.
        self.assertIn("stale_after=6", exchange.answer["headers"]["set-cookie"])

    def test_a_stale_nonce_is_answered_once_more_and_not_twice_al_303_al_304_al_305_al_306(self):
        exchange = send(request(self.url("auth", USER, "secret", "MD5", "0"), "secret"))
        self.assert_status(401, exchange)
        self.assertIn("stale=True", exchange.answer["headers"]["www-authenticate"])
        self.assertEqual(len(exchange.sent), 3)
        self.assertIn("last_nonce=", exchange.header("cookie"))
        cnonces = [part for sent in exchange.sent[1:] for part in sent["headers"]["authorization"].split(", ")
                   if part.startswith("cnonce=")]  # fmt: skip
        self.assertEqual(len(set(cnonces)), 2)
        self.assertIn("nc=00000001", exchange.header("authorization"))


class FlaskDigestAuth(Case):
    """MD5-sess and auth-int over bodies, with an opaque."""

    def test_each_algorithm_with_each_qop_and_a_body_al_285_al_286_al_287_al_288_al_290_al_292(self):
        body = {"json": {"name": "Zoë", "n": [1, 2]}}
        for algorithm in ["none", "MD5", "MD5-sess"]:
            for qop in ["none", "auth", "auth-int", "auth-int+auth"]:
                if (algorithm, qop) == ("MD5-sess", "none"):
                    continue
                with self.subTest(f"{algorithm} {qop}"):
                    url = f"{peers.python_server('flask-digest')}/{algorithm}/{qop}"
                    exchange = send(request(url, method="POST", body=body))
                    self.assert_status(200, exchange)
                    self.assertEqual(exchange.json()["body"], hashlib.sha256(exchange.body()).hexdigest())
                    used = {"none": None, "auth-int+auth": "auth"}.get(qop, qop)
                    self.assertEqual(f"qop={used}," in exchange.json()["asked"] + ",", used is not None)
                    self.assert_status(401, send(request(url, "wrong", method="POST", body=body)))

    def test_a_challenge_of_a_sess_algorithm_without_qop_al_285_al_288(self):
        exchange = send(request(f"{peers.python_server('flask-digest')}/MD5-sess/none"))
        self.assert_status(200, exchange)

    def test_a_multipart_body_is_hashed_as_it_is_sent_al_287(self):
        # Read as bytes: Flask hands a body that it parses itself to nobody else.
        url = f"{peers.python_server('flask-digest')}/MD5-sess/auth-int"
        body = {"multipart": [{"name": "a", "value": "1"}, {"name": "b", "value": "zwei\r\n", "contentType": "text/plain"}]}
        exchange = send(request(url, method="POST", body=body, headers={"content-type": "application/octet-stream"}))
        self.assert_status(200, exchange)
        self.assertIn(b'name="b"', exchange.body())
