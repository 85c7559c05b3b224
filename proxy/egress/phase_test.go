package egress

import (
	"context"
	"errors"
	"net"
	"os"
	"testing"
	"time"

	"postern/proxy/retry"
)

// late is a context whose deadline has passed and whose timer has not gone off yet.
type late struct{ context.Context }

func (late) Deadline() (time.Time, bool) { return time.Now().Add(-time.Microsecond), true }

// TestPhaseAtTheDeadline: the connection's own timer may be the first to end a dial at its deadline; that is a timeout all
// the same, so that a receiver which swallows connections has one class and not sometimes another.
func TestPhaseAtTheDeadline(t *testing.T) {
	soon, cancel := context.WithTimeout(t.Context(), time.Hour)
	defer cancel()
	ended, end := context.WithCancel(t.Context())
	end()
	timedOut := &net.OpError{Op: "dial", Err: os.ErrDeadlineExceeded}
	for name, c := range map[string]struct {
		ctx  context.Context
		err  error
		want retry.Class
	}{
		"after the deadline":    {late{t.Context()}, timedOut, retry.Timeout},
		"while a name is asked": {late{t.Context()}, &net.DNSError{IsTimeout: true}, retry.Timeout},
		"the context ended":     {ended, timedOut, retry.Timeout},
		"refused":               {soon, &net.OpError{Op: "dial", Err: errors.New("refused")}, retry.Connect},
		"no such name":          {soon, &net.DNSError{IsNotFound: true}, retry.DNS},
		"blocked":               {late{t.Context()}, &BlockedError{Class: Private}, retry.BlockedAddress},
	} {
		var got interface{ RetryClass() retry.Class }
		if !errors.As(phaseOf(c.ctx, c.err), &got) || got.RetryClass() != c.want {
			t.Errorf("%s: %v, want %v", name, got, c.want)
		}
	}
}
