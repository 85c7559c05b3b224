package egress

import (
	"errors"
	"strings"

	"postern/proxy/retry"
)

// StreamError is of a request that left and whose stream the receiver ended on purpose, without an answer.
type StreamError struct {
	Err         error
	unprocessed bool
}

// Error tells what is known of the request.
func (e *StreamError) Error() string {
	if e.unprocessed {
		return "the receiver did not process the request"
	}
	return "the receiver ended the request's stream"
}

// Unwrap gives the cause.
func (e *StreamError) Unwrap() error { return e.Err }

// RetryClass is that of a broken connection.
func (e *StreamError) RetryClass() retry.Class { return retry.Connection }

// Unprocessed tells whether the receiver promised not to have processed the request: its stream was refused (RFC 9113,
// section 8.7), or is beyond the last one that a GOAWAY names (section 6.8). If not, the receiver has failed.
func (e *StreamError) Unprocessed() bool { return e.unprocessed }

// resetError has the fields of net/http's error for RST_STREAM, which errors.As converts to it.
type resetError struct {
	StreamID uint32
	Code     uint32
	Cause    error
}

func (e resetError) Error() string { return "RST_STREAM" }

// refusedStream is the code REFUSED_STREAM (RFC 9113, section 7).
const refusedStream = 0x7

// Two errors of net/http have no other sign than their text: that of a stream beyond a GOAWAY's last one, and that of a
// connection that was closed after a GOAWAY, whose code follows.
const (
	goAwayBeyond = "http2: Transport received Server's graceful shutdown GOAWAY"
	goAwayClosed = "http2: server sent GOAWAY and closed the connection; "
)

// said is what the receiver said of a request: "unprocessed", "failed", or nothing.
func said(err error) string {
	if reset, ok := errors.AsType[resetError](err); ok {
		if reset.Code == refusedStream {
			return "unprocessed"
		}
		return "failed"
	}
	for e := err; e != nil; e = errors.Unwrap(e) {
		if e.Error() == goAwayBeyond {
			return "unprocessed"
		}
		if rest, ok := strings.CutPrefix(e.Error(), goAwayClosed); ok {
			code, _, _ := strings.Cut(rest, ", debug=") // what follows is the receiver's own text
			if !strings.HasSuffix(code, "ErrCode=NO_ERROR") {
				return "failed"
			}
		}
	}
	return ""
}
