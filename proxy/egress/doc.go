// Package egress is the door through which postbacks leave: which addresses may be reached, how they are dialled, and
// one HTTP transport per endpoint.
//
// It promises that the address actually connected to is judged by the endpoint's policy at every dial, whatever the
// name resolved to a moment ago; that the environment's proxy variables have no effect; that an endpoint never has more
// sockets than its concurrency; that nothing is added to a request beyond what HTTP/1.1 needs; and that a failure to
// connect says in which phase it happened (RetryClass). Connections tell how many bytes of plaintext left through them.
//
// It leaves out HTTP/2, whose client re-sends requests by itself, redirects, cookies, retries and every reading of an
// answer: those belong to whoever uses the transport.
//
// With an outbound proxy the connection goes to the proxy, and it is the proxy that resolves the target's name. The
// target is judged before: literals as they stand, names by resolving them here as well. The limit: the proxy may get
// another answer from its resolver than Postern got a moment before, so that a proxy in front of private networks
// should have rules of its own. A name that does not resolve here is refused (class dns) unless the policy trusts the
// name anyway; targets.allow is how to say so where only the proxy has DNS.
package egress
