"""A transactional outbox that hands over to Postern: the row commits together with the order, the relay moves it.

    OUTBOX=shop.db python3 relay.py          # once through; run it after each commit, or every second

The application writes in its own transaction:

    INSERT INTO orders ...; INSERT INTO outbox (method, url, body, content_type) VALUES (...); COMMIT

Here the database is SQLite, so that this runs as it is; in Postgres add FOR UPDATE SKIP LOCKED to the SELECT.
"""
import os
import sqlite3
import sys
import urllib.error
import urllib.request

POSTERN = os.environ.get("POSTERN", "http://localhost:8089/")

SCHEMA = """CREATE TABLE IF NOT EXISTS outbox (
    id integer PRIMARY KEY AUTOINCREMENT, method text NOT NULL, url text NOT NULL, body blob, content_type text NOT NULL)"""


def hand_over(row):
    """Returns when Postern has the event on disk. Handed over again after a crash, it is the same event."""
    event_id, method, url, body, content_type = row
    request = urllib.request.Request(
        POSTERN + url,
        data=body,
        method=method,
        headers={"Content-Type": content_type, "Postern-Event-Id": f"outbox-{event_id}"},
    )
    urllib.request.urlopen(request, timeout=15).close()


def relay(outbox):
    """Hands over what there is, oldest first, and returns how many."""
    moved = 0
    for row in outbox.execute("SELECT id, method, url, body, content_type FROM outbox ORDER BY id LIMIT 100").fetchall():
        hand_over(row)
        outbox.execute("DELETE FROM outbox WHERE id = ?", (row[0],))
        outbox.commit()
        moved += 1
    return moved


if __name__ == "__main__":
    database = sqlite3.connect(os.environ.get("OUTBOX", "shop.db"))
    database.execute(SCHEMA)
    try:
        while relay(database):
            pass
    except (urllib.error.URLError, OSError) as error:
        # 503 or nobody there: the row is still in the outbox, and the next run takes it.
        sys.exit(f"Postern takes nothing now: {error}")
