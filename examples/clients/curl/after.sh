#!/bin/sh
# The application hands the postback to Postern. A 202 means that it is on disk.
PARTNER=${PARTNER:-https://partner.example/postback}
POSTERN=${POSTERN:-http://localhost:8089/}

curl --fail --silent --show-error \
  -H 'Content-Type: application/json' \
  -H 'Idempotency-Key: order-42' \
  -d '{"order":42,"amount":"9.90"}' \
  "$POSTERN$PARTNER?cid=a+b%20c"
