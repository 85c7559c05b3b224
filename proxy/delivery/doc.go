// Package delivery makes one attempt for one event: it builds the request, sends it at most once, and says how it ended.
//
// It promises that at most one request reaches the wire for each Send, whatever net/http or a retrying client would
// like to do; that headers, path, query and body leave as the application handed them over, plus what the contract adds;
// that an attempt ends within its timeout; that a receiver's body neither holds the slot for long nor turns a success
// into a failure; and that no panic below it, and no text with a secret in it, comes out.
//
// It leaves out when to send, what follows, counting and logging (but for a panic): those are the caller's, who has
// everything he needs in the Result. It does not choose addresses or open connections; an Endpoint brings its
// RoundTripper.
//
// An attempt passes through a chain of links, assembled in New.
package delivery
