package delivery

import (
	"context"
	"crypto/tls"
	"errors"
	"net"
	"net/http"
	"syscall"

	"postern/proxy/retry"
)

// classed is an error that knows its class, as egress makes them.
type classed interface {
	error
	RetryClass() retry.Class
}

// classify finds the class of a failure without an answer: the deadline wherever it struck, what the transport says of
// its own failures, else what package net and crypto/tls say.
func classify(ctx context.Context, err error) retry.Class {
	if timedOut(ctx) {
		return retry.Timeout
	}
	if known, ok := errors.AsType[classed](err); ok {
		return known.RetryClass()
	}
	if _, ok := errors.AsType[*net.DNSError](err); ok {
		return retry.DNS
	}
	if op, ok := errors.AsType[*net.OpError](err); ok && op.Op == "dial" {
		return retry.Connect
	}
	if handshake(err) {
		return retry.TLS
	}
	return retry.Connection
}

// handshake tells whether it was TLS that failed, as far as errors of net/http's own dials tell.
func handshake(err error) bool {
	if errors.Is(err, http.ErrSchemeMismatch) { // http.Client's word for a receiver without TLS
		return true
	}
	_, untrusted := errors.AsType[*tls.CertificateVerificationError](err)
	_, garbled := errors.AsType[tls.RecordHeaderError](err)
	return untrusted || garbled
}

// failed ends an attempt that got no answer.
func failed(ctx context.Context, a *attempt, err error) {
	if cut(ctx) {
		a.result.Cut = true
	}
	class := classify(ctx, err)
	a.result.Unsent = unsent(a.wire, class)
	if a.result.Unsent && exhausted(err) {
		a.result.Cut, a.result.Exhausted = true, true
	}
	a.result.Stale = class == retry.Connection && stale(a.wire, err)
	a.result.Sampled = class == retry.Timeout
	if class == retry.Connection && alerted(err) {
		class = retry.TLS // which is known now, and says nothing about what had left by then
	}
	a.fail(class)
}

// stale tells whether a break says nothing about the endpoint. With HTTP/2 the receiver itself may tell whether it looked
// at the request; else it is how connections that were kept for too long break.
func stale(w *wire, err error) bool {
	if known, ok := errors.AsType[interface {
		error
		Unprocessed() bool
	}](err); ok {
		return known.Unprocessed()
	}
	return w.stale()
}

// exhausted tells whether it was this machine that had no descriptor, port or memory left for a connection: that says
// nothing about the receiver, and no event is to pay for it.
func exhausted(err error) bool {
	for _, ours := range []error{syscall.EMFILE, syscall.ENFILE, syscall.ENOMEM, syscall.ENOBUFS, syscall.EADDRNOTAVAIL} {
		if errors.Is(err, ours) {
			return true
		}
	}
	return false
}

// alerted tells whether the receiver ended the connection by a TLS alert. In TLS 1.3 a client certificate that is
// missing or refused is only told after the handshake (RFC 8446, section 4.4.2.4); crypto/tls has no type of its own
// for it.
func alerted(err error) bool {
	op, ok := errors.AsType[*net.OpError](err)
	return ok && op.Op == "remote error"
}

// unsent tells whether it is certain that no byte left.
func unsent(w *wire, class retry.Class) bool {
	switch class {
	case retry.DNS, retry.Connect, retry.TLS, retry.BlockedAddress:
		return true
	}
	return w.unsent()
}
