#!/bin/sh
# The application calls the partner. When the partner is away, the postback is lost.
PARTNER=${PARTNER:-https://partner.example/postback}

curl --fail --silent --show-error \
  -H 'Content-Type: application/json' \
  -d '{"order":42,"amount":"9.90"}' \
  "$PARTNER?cid=a+b%20c"
