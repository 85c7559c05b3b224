package app

import (
	"context"
	"fmt"
	"os"
	"path/filepath"
	"strings"
	"sync"
	"syscall"
	"testing"
	"time"

	"postern/configs"
)

// sharedLog is a log that is read while it is written.
type sharedLog struct {
	mu   sync.Mutex
	text strings.Builder
}

func (l *sharedLog) Write(p []byte) (int, error) {
	l.mu.Lock()
	defer l.mu.Unlock()
	return l.text.Write(p)
}

func (l *sharedLog) count(what string) int {
	l.mu.Lock()
	defer l.mu.Unlock()
	return strings.Count(l.text.String(), what)
}

// TestReloadBesideTheSync changes the central store under a running Postern again and again. It is for the race detector:
// a reload wakes the goroutine that opens stores.
func TestReloadBesideTheSync(t *testing.T) {
	dir := t.TempDir()
	path := filepath.Join(dir, "postern.yaml")
	write := func(n int) {
		t.Helper()
		text := fmt.Sprintf("listen: \"unix:%s/in\"\nadmin: { listen: \"unix:%s/admin\" }\nspool: { dir: %q }\nsync: { dsn: \"postgres://127.0.0.1:1/n%d\", payloads: all }\n", dir, dir, dir, n)
		if err := os.WriteFile(path, []byte(text), 0o600); err != nil {
			t.Fatal(err)
		}
	}
	write(0)
	var log sharedLog
	ctx, stop := context.WithCancel(t.Context())
	ready, ended := make(chan struct{}), make(chan error, 1)
	go func() {
		ended <- Run(ctx, Options{
			Config: configs.Options{Path: path, Getenv: func(string) (string, bool) { return "", false }}, Stderr: &log,
			Ready: func(Addrs) { close(ready) },
		})
	}()
	select {
	case <-ready:
	case err := <-ended:
		t.Fatalf("it did not start: %v", err)
	}
	for n := 1; n <= 20; n++ {
		write(n)
		if err := syscall.Kill(os.Getpid(), syscall.SIGHUP); err != nil {
			t.Fatal(err)
		}
		for deadline := time.Now().Add(time.Minute); log.count("configuration reloaded") < n; time.Sleep(time.Millisecond) {
			if time.Now().After(deadline) {
				t.Fatalf("reload %d is not in the log", n)
			}
		}
	}
	stop()
	if err := <-ended; err != nil {
		t.Error(err)
	}
}
