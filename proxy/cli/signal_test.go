package cli

import (
	"bufio"
	"bytes"
	"fmt"
	"io"
	"net/http"
	"net/http/httptest"
	"os"
	"os/exec"
	"path/filepath"
	"strings"
	"sync/atomic"
	"syscall"
	"testing"
	"testing/synctest"
	"time"
)

// command prepares this very binary as postern, in a process of its own that signals can be sent to.
func command(t *testing.T, args ...string) *exec.Cmd {
	t.Helper()
	path, err := exec.LookPath("postern")
	if err != nil {
		t.Fatal(err)
	}
	cmd := exec.Command(path, args...)
	cmd.Dir = t.TempDir()
	return cmd
}

// TestSecondSignalEndsAtOnce: the first SIGTERM waits for the attempt that runs, and its repetition with it; one that
// comes later does not.
func TestSecondSignalEndsAtOnce(t *testing.T) {
	arrived, release := make(chan bool), make(chan bool)
	receiver := httptest.NewServer(http.HandlerFunc(func(http.ResponseWriter, *http.Request) {
		arrived <- true
		<-release
	}))
	defer receiver.Close()
	defer close(release)

	socket := filepath.Join(t.TempDir(), "s")
	cmd := command(t, "run", "--dev", "--listen", "unix:"+socket, "--admin-listen", "unix:"+socket+"a")
	log, err := cmd.StderrPipe()
	if err != nil {
		t.Fatal(err)
	}
	if err := cmd.Start(); err != nil {
		t.Fatal(err)
	}
	lines := bufio.NewScanner(log)
	await := func(text string) {
		for lines.Scan() {
			if strings.Contains(lines.Text(), text) {
				return
			}
		}
		t.Errorf("the log ended without %q", text)
	}
	await("postern is ready")
	sent := typed{args: []string{"send", receiver.URL + "/hang", "--ingest", "unix:" + socket}}.run(t)
	if sent.code != 0 {
		t.Errorf("send: %s", sent.stderr)
	}
	<-arrived
	// As `timeout` does it: the process, and then its group. It is one signal.
	began := time.Now()
	for range 2 {
		if err := cmd.Process.Signal(syscall.SIGTERM); err != nil {
			t.Error(err)
		}
	}
	await("postern is stopping")
	ended := make(chan struct{})
	go func() {
		defer close(ended)
		io.Copy(io.Discard, log)
		cmd.Wait()
	}()
	again := time.NewTicker(100 * time.Millisecond)
	defer again.Stop()
	for running := true; running; {
		select {
		case <-again.C:
			cmd.Process.Signal(syscall.SIGTERM) // it may be gone already
		case <-ended:
			running = false
		}
	}
	if took := time.Since(began); took < echo {
		t.Errorf("it ended %s after the first signal: a repetition was taken for a second one", took)
	}
	if status := cmd.ProcessState.Sys().(syscall.WaitStatus); !status.Signaled() || status.Signal() != syscall.SIGTERM {
		t.Errorf("it ended otherwise than by the signal: %s", cmd.ProcessState)
	}
}

// TestASignalAndItsEcho: what comes within a second of the first one belongs to it.
func TestASignalAndItsEcho(t *testing.T) {
	for _, c := range []struct {
		name   string
		second []time.Duration // after the first signal
		left   int             // signals that are no echo
	}{
		{"alone", nil, 0},
		{"at once", []time.Duration{0, 0, 0}, 0},
		{"soon", []time.Duration{time.Millisecond, 999 * time.Millisecond}, 0},
		{"later", []time.Duration{0, 1001 * time.Millisecond}, 1},
	} {
		t.Run(c.name, func(t *testing.T) {
			synctest.Test(t, func(t *testing.T) {
				arrived, over := make(chan os.Signal, 16), make(chan struct{})
				stopped := 0
				arrived <- syscall.SIGTERM
				for _, after := range c.second {
					time.AfterFunc(after, func() { arrived <- syscall.SIGINT })
				}
				ignoreEcho(arrived, over, func() { stopped++ })
				time.Sleep(time.Second) // the bubble's clock
				if stopped != 1 || len(arrived) != c.left {
					t.Errorf("stopped %d times, %d signals left, want 1 and %d", stopped, len(arrived), c.left)
				}
			})
		})
	}
	synctest.Test(t, func(t *testing.T) { // over before any signal, and before the echo's end
		for _, signals := range []int{0, 1} {
			arrived, over := make(chan os.Signal, 1), make(chan struct{})
			for range signals {
				arrived <- syscall.SIGTERM
			}
			time.AfterFunc(time.Millisecond, func() { close(over) })
			began := time.Now()
			ignoreEcho(arrived, over, func() {})
			if took := time.Since(began); took != time.Millisecond {
				t.Errorf("with %d signals it took %s", signals, took)
			}
		}
	})
}

// TestInterruptStopsAPacedReplay: Ctrl-C is passed on to the Postern that replays.
func TestInterruptStopsAPacedReplay(t *testing.T) {
	polled := make(chan bool, 1000)
	var stopped atomic.Bool
	server := httptest.NewServer(http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
		state := "running"
		switch r.Method {
		case "POST":
			w.WriteHeader(http.StatusAccepted)
			fmt.Fprint(w, `{"matched":100,"replayed":0,"dry_run":false,"started":true,"id":"rpl_1"}`)
			return
		case "DELETE":
			stopped.Store(true)
		case "GET":
			polled <- true
			if stopped.Load() {
				state = "stopped"
			}
		}
		fmt.Fprintf(w, `{"id":"rpl_1","state":%q,"matched":100,"replayed":7,"skipped":0,"error":null}`, state)
	}))
	defer server.Close()

	cmd := command(t, "dead-letters", "replay", "--all", "--rate", "1", "--admin", server.URL)
	var out, errs bytes.Buffer
	cmd.Stdout, cmd.Stderr = &out, &errs
	if err := cmd.Start(); err != nil {
		t.Fatal(err)
	}
	<-polled
	if err := cmd.Process.Signal(syscall.SIGINT); err != nil {
		t.Error(err)
	}
	cmd.Wait()
	if cmd.ProcessState.ExitCode() != 1 || out.String() != "7 of 100 dead letters replayed.\n" ||
		!strings.Contains(errs.String(), "the replay was stopped before its end; what it did not reach stays a dead letter") {
		t.Errorf("%s\n%s%s", cmd.ProcessState, out.String(), errs.String())
	}
}
