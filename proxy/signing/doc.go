// Package signing signs webhook requests and checks received ones, with HMAC-SHA256 over the exact body.
//
// Five schemes: standard (Standard Webhooks 1.0), stripe (Stripe's t=…,v1=…), hub (GitHub's and WebSub's
// X-Hub-Signature-256), template (a header of one's own, for receivers that are older than all of these), and none.
// Postern signs every attempt with a [Signer], anew; receivers written in Go check it with a [Verifier].
//
// It promises what the schemes' official libraries accept and expect, comparisons in constant time, and errors that
// tell apart what failed and never hold a secret, a header's value or a byte of a body. It needs nothing but the
// standard library.
//
// It leaves out reading the body (bound it: http.MaxBytesReader), storing secrets, and recognising repetitions: a
// signature proves who sent a request and that it is whole, a fresh timestamp that it is recent, and only the event ID
// that it is new. The schemes stripe and hub do not sign the ID, and hub signs no timestamp: whoever captured such a
// request can send it again, under hub for ever. The scheme standard separates ID, timestamp and body by full stops, so
// event IDs that an application makes itself had better have none in them.
package signing
