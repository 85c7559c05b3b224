package delivery

import (
	"context"
	"net"
	"net/http"
	"os"
	"syscall"
	"testing"

	"postern/proxy/retry"
	"postern/spool"
)

// noDescriptors fails as a dial does on a machine that has no file descriptor left.
type noDescriptors struct{}

func (noDescriptors) RoundTrip(r *http.Request) (*http.Response, error) {
	r.Body.Close()
	return nil, dialError{&net.OpError{Op: "dial", Net: "tcp", Err: os.NewSyscallError("socket", syscall.EMFILE)}}
}

type dialError struct{ error }

func (e dialError) Unwrap() error           { return e.error }
func (e dialError) RetryClass() retry.Class { return retry.Connect }

// What this machine lacks is no fault of the receiver: the attempt is as if it had not been made.
func TestOutOfDescriptorsIsNotCharged(t *testing.T) {
	s := New(Config{Log: nil})
	got := s.Send(context.Background(), &Job{
		Event: &spool.Event{ID: "e", Method: "POST", Target: "http://partner.example/", Body: []byte("x")}, Number: 1,
		Endpoint: &Endpoint{Name: "http://partner.example", RoundTripper: noDescriptors{}},
	})
	if !got.Cut || !got.Exhausted || !got.Unsent {
		t.Errorf("%+v", got)
	}
}
