"""The application calls the partner. When the partner is away, the postback is lost."""
import json
import os
import urllib.request

PARTNER = os.environ.get("PARTNER", "https://partner.example/postback")

request = urllib.request.Request(
    PARTNER + "?cid=a+b%20c",
    data=json.dumps({"order": 42, "amount": "9.90"}).encode(),
    headers={"Content-Type": "application/json"},
)
urllib.request.urlopen(request, timeout=15).close()  # raises for anything but a 2xx
