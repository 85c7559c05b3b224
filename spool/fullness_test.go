package spool

import (
	"bytes"
	"log/slog"
	"strings"
	"sync"
	"testing"
	"testing/synctest"
	"time"
)

// lockedBuffer is a log that is read while it is written.
type lockedBuffer struct {
	mu  sync.Mutex
	buf bytes.Buffer
}

func (b *lockedBuffer) Write(p []byte) (int, error) {
	b.mu.Lock()
	defer b.mu.Unlock()
	return b.buf.Write(p)
}

func (b *lockedBuffer) String() string {
	b.mu.Lock()
	defer b.mu.Unlock()
	return b.buf.String()
}

// A spool that is full says so once, with what is used up, and once that there is room again, however often room comes and
// goes meanwhile.
func TestFullIsSaidOnce(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		var log lockedBuffer
		r := newRig(t, func(c *Config) {
			c.MaxBytes, c.MaxEventBytes, c.MaxEndpointShare = mib, mib/4, 1
			c.Logger = slog.New(slog.NewTextHandler(&log, nil))
		})
		said := func(text string) int { synctest.Wait(); return strings.Count(log.String(), text) }
		for range 5 {
			r.fill(endpointA, 3000)
			time.Sleep(3 * time.Second)
			r.drain(endpointA)
			time.Sleep(3 * time.Second)
		}
		if full, again := said("the spool is full"), said("has room again"); full != 1 || again != 0 || !strings.Contains(log.String(), "spool.max_bytes is used up") {
			t.Errorf("said %d times that it is full, and %d times that it no longer is:\n%s", full, again, log.String())
		}
		time.Sleep(2 * fullQuiet)
		if again := said("has room again"); again != 1 {
			t.Errorf("said %d times that there is room again:\n%s", again, log.String())
		}
		r.fill(endpointA, 3000)
		time.Sleep(3 * time.Second)
		if full := said("the spool is full"); full != 2 {
			t.Errorf("said %d times that it is full:\n%s", full, log.String())
		}
		r.drain(endpointA)
	})
	if cause := (&room{byDisk: true}).cause(); !strings.Contains(cause, "disk") {
		t.Errorf("a full disk is called %q", cause)
	}
}

// A spool that was full is full after a restart, before anybody was refused; an empty one is not.
func TestFullAfterARestart(t *testing.T) {
	t.Parallel()
	r := newRig(t, func(c *Config) { c.MaxBytes, c.MaxEventBytes, c.MaxEndpointShare = 2*mib, mib/4, 1 })
	r.fill(endpointA, 10_000)
	r.reopen()
	if !r.Stats().Full {
		t.Errorf("not full after a restart: %+v", r.Stats())
	}
	r.drain(endpointA)
	r.until("with room", func(st Stats) bool { return !st.Full })
	r.reopen()
	if r.Stats().Full {
		t.Errorf("full after everything was delivered: %+v", r.Stats())
	}
}

// An endpoint whose share is used up is named, once in a while; the others are not.
func TestShareIsFull(t *testing.T) {
	t.Parallel()
	var log lockedBuffer
	r := newRig(t, func(c *Config) {
		c.MaxBytes, c.MaxEventBytes, c.MaxEndpointShare = 4*mib, mib/8, 0.25
		c.Logger = slog.New(slog.NewTextHandler(&log, nil))
	})
	r.append(event("other", "https://b.example", "x"))
	r.fill(endpointA, 10_000)
	if !r.Counts(endpointA).Full || r.Counts("https://b.example").Full || r.Stats().Full {
		t.Errorf("%+v, %+v, %+v", r.Counts(endpointA), r.Counts("https://b.example"), r.Stats())
	}
	r.fill(endpointA, 10_000)
	if n := strings.Count(log.String(), "used up its share"); n != 1 || !strings.Contains(log.String(), "endpoint="+endpointA) {
		t.Errorf("said %d times: %s", n, log.String())
	}
	r.drain(endpointA)
	if r.Counts(endpointA).Full {
		t.Errorf("full after everything was delivered: %+v", r.Counts(endpointA))
	}
}
