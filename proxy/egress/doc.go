// Package egress is the door through which postbacks leave: which addresses may be reached, how they are dialled, and
// one HTTP transport per endpoint.
//
// It promises that the address actually connected to is judged by the endpoint's policy at every dial, whatever the
// name resolved to a moment ago; that the environment's proxy variables have no effect; that an endpoint never has more
// sockets than its concurrency, but for idle ones while a receiver changes its protocol; that nothing is added to a
// request beyond what HTTP needs; and that a failure to connect says in which phase it happened (RetryClass).
// Connections tell how many bytes of plaintext left through them, and HTTP/2 streams whether anything of theirs did.
//
// It promises one request on the wire for each RoundTrip, or none. That is why HTTP/2, which is offered to receivers
// over TLS, does not go through net/http's pool, whose client opens another stream by itself after REFUSED_STREAM, a
// GOAWAY or a PROTOCOL_ERROR: each request goes to one http.ClientConn (see pool), and a request that the receiver
// promised not to have processed comes back as a StreamError that says so. Over HTTP/1.1 a request is only safe from being sent
// twice if it does not look replayable to net/http: that is its maker's part (package delivery).
//
// TLS files are read again when they change, and connections made with the old ones end with the requests on them.
//
// It leaves out redirects, cookies, retries and every reading of an answer: those belong to whoever uses the transport.
//
// With an outbound proxy the connection goes to the proxy, and it is the proxy that resolves the target's name. The
// target is judged before: literals as they stand, names by resolving them here as well. The limit: the proxy may get
// another answer from its resolver than Postern got a moment before, so that a proxy in front of private networks
// should have rules of its own. A name that does not resolve here is refused (class dns) unless the policy trusts the
// name anyway; targets.allow is how to say so where only the proxy has DNS.
package egress
