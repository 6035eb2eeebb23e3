"""Starts one of the servers that others wrote in Python, on a free port, and prints the port as its first line.

    python start_server.py httpbin | flask-digest | moto | swift [FOLDER]

There is no server of our own here: what these functions add is what its makers leave to whoever runs it, such as users and
their passwords. `swift` gets a folder for its configuration.
"""

import hashlib
import os
import pathlib
import sys

USER, PASSWORD = "Mufasa", "Circle of Life"

SWIFT_CONFIGURATION = """
[DEFAULT]
log_level = CRITICAL

[pipeline:main]
pipeline = s3api tempauth proxy-server

[filter:s3api]
use = egg:swift#s3api
location = eu-west-3

[filter:tempauth]
use = egg:swift#tempauth
user_test_tester = {password} .admin

[app:proxy-server]
use = call:start_server:backend
"""


def serve_wsgi(app):
    from werkzeug.serving import make_server

    server = make_server("127.0.0.1", 0, app, threaded=True)
    print(server.port, flush=True)
    server.serve_forever()


def httpbin():
    """https://httpbin.org, as it is."""
    from httpbin import app

    serve_wsgi(app)


def flask_digest():
    """Flask-DigestAuth with each of the things it can ask for, at /ALGORITHM/QOP; `none` asks for nothing."""
    from flask import Flask, request
    from flask_digest_auth import DigestAuth, make_password_hash

    site = Flask("flask_digest")
    site.secret_key = "of sessions, which nothing here keeps"

    def protect(algorithm, qop):
        auth = DigestAuth(realm="peers")
        auth.algorithm = None if algorithm == "none" else algorithm
        # The library has an attribute for it, but no setter.
        auth._DigestAuth__qop = [] if qop == "none" else qop.split("+")
        auth.register_get_password(
            lambda user: make_password_hash("peers", user, PASSWORD) if user == USER else None
        )
        auth.register_get_user(lambda user: user)

        def view():
            return {"body": hashlib.sha256(request.data).hexdigest(), "asked": request.headers["Authorization"]}

        path = f"/{algorithm}/{qop}"
        site.add_url_rule(path, path, auth.login_required(view), methods=["GET", "POST"])

    for algorithm in ["none", "MD5", "MD5-sess"]:
        for qop in ["none", "auth", "auth-int", "auth-int+auth"]:
            protect(algorithm, qop)
    serve_wsgi(site)


def moto():
    """An emulator of AWS. INITIAL_NO_AUTH_ACTION_COUNT says after how many requests it checks signatures and policies."""
    from moto.server import DomainDispatcherApplication, create_backend_app

    serve_wsgi(DomainDispatcherApplication(create_backend_app))


def backend(global_conf, **conf):
    """What stands behind Swift's checks: says that everything is there, and what it was asked for."""
    from swift.common.swob import Request

    def app(environ, start_response):
        # Whoever checked who it is leaves the verdict to whoever has what was asked for.
        refusal = environ["swift.authorize"](Request(environ))
        if refusal:
            return refusal(environ, start_response)
        path = environ["PATH_INFO"].encode("latin-1")
        if environ["REQUEST_METHOD"] == "PUT":
            body = environ["wsgi.input"].read()
            etag = hashlib.md5(body).hexdigest()
            start_response("201 Created", [("ETag", etag), ("Content-Length", "0")])
            return [b""]
        if environ["REQUEST_METHOD"] == "HEAD":
            start_response("204 No Content", [("X-Container-Object-Count", "0"), ("Content-Length", "0")])
            return [b""]
        start_response("200 OK", [("Content-Length", str(len(path))), ("Content-Type", "text/plain")])
        return [path]

    return app


def swift(folder):
    """OpenStack Swift's S3 API and its users."""
    import eventlet
    import eventlet.wsgi
    from paste.deploy import loadapp
    from swift.common.http_protocol import SwiftHttpProtocol

    path = pathlib.Path(folder) / "proxy.conf"
    path.write_text(SWIFT_CONFIGURATION.format(password=PASSWORD.replace(" ", "-")))
    sys.path.insert(0, os.path.dirname(os.path.abspath(__file__)))
    app = loadapp(f"config:{path}")
    socket = eventlet.listen(("127.0.0.1", 0))
    print(socket.getsockname()[1], flush=True)
    # Its own protocol, as it keeps the path as it was sent, which is what is signed.
    eventlet.wsgi.server(socket, app, protocol=SwiftHttpProtocol, log_output=False)


if __name__ == "__main__":
    name, *rest = sys.argv[1:]
    {"httpbin": httpbin, "flask-digest": flask_digest, "moto": moto, "swift": swift}[name](*rest)
