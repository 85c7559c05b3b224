// Package scheduler decides which event is tried next, and writes down what came of it.
//
// One goroutine owns every decision: per endpoint a line of waiting events, the limiter's gate, and the count of what
// is in flight. It promises that
//
//   - no endpoint holds up another: concurrency is bounded per endpoint and in total, and a part of all slots is kept for
//     endpoints that have nothing in flight;
//   - new events keep a share of their endpoint's slots while a backlog drains;
//   - a stopped endpoint costs nothing: its events stay on disk and nobody looks at them until something changes;
//   - no event is in memory that was not about to be sent: fresh ones are handed on within a bound, the rest is read
//     back from the due index in order of due time;
//   - an attempt is recorded once, and told (metrics, log) once its record is on disk;
//   - while the spool cannot be written nothing new is sent.
//
// It leaves out: how a request is made (Sender), what the limiter allows (package limiter), how retries are spaced
// (package retry), and where things are kept (Store). It has no I/O of its own but Store's.
package scheduler
