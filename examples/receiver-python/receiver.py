"""The other end of a webhook: takes orders that Postern delivers, trusts none that is not signed, books each one once.

    SECRETS=secrets.txt ORDERS=orders.db python3 receiver.py 127.0.0.1:9000

secrets.txt has one secret per line, the same as in Postern's configuration (sign.secrets). This file needs Python's
standard library alone; with the package `standardwebhooks` verify() below is Webhook(secret).verify(body, headers).
"""
import base64
import hashlib
import hmac
import json
import os
import sqlite3
import sys
import time
from http.server import BaseHTTPRequestHandler, ThreadingHTTPServer

TOLERANCE = 5 * 60  # seconds
MAX_BODY = 1 << 20

with open(os.environ.get("SECRETS", "secrets.txt")) as file:
    # With two of them, requests signed by either are accepted, so that a secret can be changed without a gap.
    SECRETS = [base64.b64decode(line.removeprefix("whsec_"), validate=True) for line in file.read().split()]
if not SECRETS or not all(SECRETS):
    sys.exit("the file of secrets holds none, or an empty one")

DATABASE = os.environ.get("ORDERS", "orders.db")


def verify(headers, body):
    """Tells whether one of the secrets signed these bytes, under this ID, just now."""
    event_id, timestamp = headers.get("webhook-id", ""), headers.get("webhook-timestamp", "")
    if not event_id or not timestamp.isascii() or not timestamp.isdigit() or len(timestamp) > 12:
        return False
    if abs(time.time() - int(timestamp)) > TOLERANCE:
        return False
    signed = f"{event_id}.{timestamp}.".encode("latin-1") + body
    given = [s.removeprefix("v1,") for s in headers.get("webhook-signature", "").split() if s.startswith("v1,")]
    for secret in SECRETS:
        wanted = base64.b64encode(hmac.new(secret, signed, hashlib.sha256).digest()).decode()
        if any(hmac.compare_digest(wanted.encode(), s.encode("latin-1")) for s in given):
            return True
    return False


def book(event_id, amount):
    """Books one event: its ID and its effect in one transaction, with the ID as a unique key."""
    with sqlite3.connect(DATABASE, timeout=10) as db:
        db.execute("INSERT INTO orders (event_id, amount) VALUES (?, ?) ON CONFLICT DO NOTHING", (event_id, amount))
    db.close()


class Server(ThreadingHTTPServer):
    request_queue_size = 128  # the default of 5 is less than the attempts that come at once
    daemon_threads = True


class Receiver(BaseHTTPRequestHandler):
    protocol_version = "HTTP/1.1"
    timeout = 10

    def do_POST(self):
        # First the bytes as they came: a signature is about these, not about what a JSON parser makes of them.
        length = int(self.headers.get("Content-Length") or 0)
        if length > MAX_BODY:
            self.rfile.read(min(length, 2 * MAX_BODY))  # who is still writing would see a reset instead of the answer
            self.close_connection = True
            return self.answer(413)
        body = self.rfile.read(length)
        if not verify(self.headers, body):
            return self.answer(401)  # final: Postern shows it as a dead letter
        try:
            amount = json.loads(body)["amount"]
            if type(amount) is not int:
                raise TypeError
        except (ValueError, TypeError, KeyError):
            return self.answer(422)  # final too
        try:
            book(self.headers["webhook-id"], amount)
        except sqlite3.Error:
            return self.answer(503)  # Postern tries again
        self.answer(204)  # only now, with the order on disk; for one that was booked before as well

    def do_GET(self):
        db = sqlite3.connect(DATABASE)
        orders, total = db.execute("SELECT count(*), coalesce(sum(amount), 0) FROM orders").fetchone()
        db.close()
        self.answer(200, f"{orders} orders, {total} in all\n".encode())

    def answer(self, status, text=b""):
        self.send_response(status)
        if status != 204:
            self.send_header("Content-Length", str(len(text)))
        self.end_headers()
        self.wfile.write(text)

    def log_message(self, *_):
        """Says nothing: a request line may hold what belongs in no log."""


with sqlite3.connect(DATABASE) as db:
    db.execute("CREATE TABLE IF NOT EXISTS orders (event_id text PRIMARY KEY, amount integer NOT NULL)")
db.close()
host, port = (sys.argv[1] if len(sys.argv) > 1 else "127.0.0.1:9000").rsplit(":", 1)
Server((host, int(port)), Receiver).serve_forever()
