"""The application hands the postback to Postern. A 202 means that it is on disk."""
import json
import os
import urllib.request

PARTNER = os.environ.get("PARTNER", "https://partner.example/postback")
POSTERN = os.environ.get("POSTERN", "http://localhost:8089/")

request = urllib.request.Request(
    POSTERN + PARTNER + "?cid=a+b%20c",
    data=json.dumps({"order": 42, "amount": "9.90"}).encode(),
    headers={"Content-Type": "application/json", "Idempotency-Key": "order-42"},
)
urllib.request.urlopen(request, timeout=15).close()  # raises for anything but a 2xx
