"""A gate for tests that answers as one row of the contract says, and keeps what it was asked."""

import base64
import http.server
import json
import pathlib
import socket
import ssl
import subprocess
import threading

CONTRACT = json.loads((pathlib.Path(__file__).parent.parent / "testdata" / "contract.json").read_text("utf-8"))
TOOL, ROWS = CONTRACT["tool"], CONTRACT["rows"]
FIELDS = set("name status headers body bodyBase64 bodyRepeat pad padTo chunked delay delayBody trickle hangUp cutAt timeout want".split())
ALLOW = ROWS[0]


def body_of(row, uid):
    if "bodyBase64" in row:
        body = base64.b64decode(row["bodyBase64"])
    elif "bodyRepeat" in row:
        text, times = row["bodyRepeat"]
        body = (text * times).encode()
    else:
        body = row.get("body", "")
        body = (body if isinstance(body, str) else json.dumps(body)).encode()
    body = body.replace(b"{{uid}}", uid.encode())
    return body + b" " * max(row.get("pad", 0), row.get("padTo", 0) - len(body), 0)


def response(outcome, **fields):
    """A row whose answer has this outcome."""
    answer = {"uid": "{{uid}}", "outcome": outcome, "reason": "R", "by": "decider", "retryable": False, **fields}
    return {"status": 200, "body": {**ALLOW["body"], "response": answer}}


class _Handler(http.server.BaseHTTPRequestHandler):
    protocol_version = "HTTP/1.1"

    def do_POST(self):
        gate, row = self.server.gate, self.server.gate.row
        raw = self.rfile.read(int(self.headers["Content-Length"]))
        review = json.loads(raw)
        gate.asked.append({"path": self.path, "headers": self.headers, "raw": raw, "review": review})
        gate.on_ask(review)
        self.close_connection = True
        try:
            gate.stopping.wait(row.get("delay", 0) / 1000)
            if not row.get("hangUp"):
                if "answer" in row:  # a test's own, by what was asked
                    row = {**row, "body": {**row["body"], "response": row["answer"](review)}}
                self._answer(row, body_of(row, review["request"]["uid"]), gate.stopping)
        except OSError:
            pass  # a client that goes away is part of some rows

    def _answer(self, row, body, stopping):
        self.send_response(row["status"])
        for name, value in row.get("headers", {}).items():
            self.send_header(name, value)
        if row["status"] == 204:
            body = b""
        elif row.get("chunked"):
            self.send_header("Transfer-Encoding", "chunked")
            body = b"%x\r\n%s\r\n0\r\n\r\n" % (len(body), body)
        else:
            self.send_header("Content-Length", str(len(body)))
        self.end_headers()
        stopping.wait(row.get("delayBody", 0) / 1000)
        step = 1 if row.get("trickle") else max(1, len(body))
        for at in range(0, len(body[: row.get("cutAt")]), step):
            self.wfile.write(body[: row.get("cutAt")][at : at + step])
            if stopping.wait(row.get("trickle", 0) / 1000):
                return

    def log_message(self, *_):
        pass


class _Server(http.server.ThreadingHTTPServer):
    def handle_error(self, request, client_address):
        pass  # a handshake that a client refuses is part of a test


class FakeGate:
    """Serve a row on loopback while the context is open."""

    def __init__(self, row, *, port=0, certificate=None, on_ask=lambda review: None):
        self.row, self.on_ask, self.asked, self.stopping = row, on_ask, [], threading.Event()
        self._server = _Server(("127.0.0.1", port), _Handler)
        self._server.gate, self._server.daemon_threads = self, True
        if certificate:
            context = ssl.SSLContext(ssl.PROTOCOL_TLS_SERVER)
            context.load_cert_chain(*certificate)
            self._server.socket = context.wrap_socket(self._server.socket, server_side=True)
        scheme = "https" if certificate else "http"
        self.url = f"{scheme}://127.0.0.1:{self._server.server_address[1]}"
        self._thread = threading.Thread(target=self._server.serve_forever, args=(0.01,), daemon=True)

    def __enter__(self):
        self._thread.start()
        return self

    def __exit__(self, *_):
        self.stopping.set()
        self._server.shutdown()
        self._server.server_close()
        self._thread.join()


def free_port():
    with socket.socket() as sock:
        sock.bind(("127.0.0.1", 0))
        return sock.getsockname()[1]


def certificate(folder):
    """Make a certificate for loopback that is its own authority; gives the files of certificate and key."""
    cert, key = folder + "/cert.pem", folder + "/key.pem"
    subprocess.run(
        ["openssl", "req", "-x509", "-newkey", "ec", "-pkeyopt", "ec_paramgen_curve:prime256v1", "-nodes", "-days", "2"]
        + ["-subj", "/CN=gate", "-addext", "subjectAltName=IP:127.0.0.1", "-keyout", key, "-out", cert],
        check=True,
        capture_output=True,
    )
    return cert, key
