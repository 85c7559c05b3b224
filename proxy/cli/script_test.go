package cli

import (
	"bufio"
	"errors"
	"io"
	"io/fs"
	"net/http"
	"net/http/httptest"
	"os"
	"os/exec"
	"path/filepath"
	"regexp"
	"strconv"
	"strings"
	"syscall"
	"testing"
	"time"

	"github.com/rogpeppe/go-internal/testscript"
)

// TestScripts runs what a person types, as text, in processes of their own. Beside testscript's commands there are
//
//	code N COMMAND...             run a command and compare its exit code
//	start-postern [FLAGS]         run `postern run FLAGS` in the background and wait until it is ready
//	stop-postern                  tell it to stop with SIGTERM, and expect exit code 0
//	eventually PATTERN COMMAND... repeat a command until its standard output matches
//
// and $RECV, a receiver that answers 200 under /ok, 401 under /no, 418 under /teapot and 503 under /fail. Sockets are in $WORK, so that
// scripts need no ports.
func TestScripts(t *testing.T) {
	receiver := httptest.NewServer(http.HandlerFunc(receive))
	t.Cleanup(receiver.Close)
	testscript.Run(t, testscript.Params{
		Dir:                 "testdata/script",
		WorkdirRoot:         t.TempDir(), // testscript leaves its own root behind where only some scripts run
		RequireExplicitExec: true,
		RequireUniqueNames:  true,
		Cmds: map[string]func(*testscript.TestScript, bool, []string){
			"code": code, "start-postern": startPostern, "stop-postern": stopPostern, "eventually": eventually,
		},
		Setup: func(env *testscript.Env) error {
			env.Setenv("TZ", "UTC")
			env.Setenv("RECV", receiver.URL)
			env.Values[running{}] = &background{}
			return expandFile(filepath.Join(env.WorkDir, "postern.yaml"), "$RECV", receiver.URL)
		},
	})
}

// expandFile replaces a word in a file, if the script has that file: testscript does so in commands alone.
func expandFile(path, word, value string) error {
	text, err := os.ReadFile(path)
	if errors.Is(err, fs.ErrNotExist) {
		return nil
	}
	if err != nil {
		return err
	}
	return os.WriteFile(path, []byte(strings.ReplaceAll(string(text), word, value)), 0o600)
}

func receive(w http.ResponseWriter, r *http.Request) {
	io.Copy(io.Discard, r.Body)
	switch {
	case strings.HasPrefix(r.URL.Path, "/no"):
		w.WriteHeader(http.StatusUnauthorized)
	case strings.HasPrefix(r.URL.Path, "/teapot"):
		w.WriteHeader(http.StatusTeapot)
	case strings.HasPrefix(r.URL.Path, "/fail"):
		w.WriteHeader(http.StatusServiceUnavailable)
	default:
		io.WriteString(w, "thanks for "+r.Header.Get("X-Order")+"\n")
	}
}

func code(ts *testscript.TestScript, neg bool, args []string) {
	if neg || len(args) < 2 {
		ts.Fatalf("usage: code N command [args...]")
	}
	want, err := strconv.Atoi(args[0])
	ts.Check(err)
	got := 0
	if exit, ok := errors.AsType[*exec.ExitError](ts.Exec(args[1], args[2:]...)); ok {
		got = exit.ExitCode()
	}
	if got != want {
		ts.Fatalf("exit code %d, want %d", got, want)
	}
}

// running is the key of the script's background Postern.
type running struct{}

type background struct {
	cmd    *exec.Cmd
	logged chan struct{} // closed when its standard error has ended
}

func startPostern(ts *testscript.TestScript, neg bool, args []string) {
	b := ts.Value(running{}).(*background)
	if neg || b.cmd != nil {
		ts.Fatalf("usage: start-postern [flags], once at a time")
	}
	binary, err := lookPath(ts.Getenv("PATH"))
	ts.Check(err)
	cmd := exec.Command(binary, append([]string{"run"}, args...)...)
	cmd.Args[0] = "postern" // the test binary looks at its name
	cmd.Dir, cmd.Env = ts.MkAbs("."), []string{"TZ=UTC", "PATH=" + ts.Getenv("PATH"), "POSTERN_CONFIG=" + ts.Getenv("POSTERN_CONFIG")}
	out, err := os.Create(ts.MkAbs("postern.out"))
	ts.Check(err)
	defer out.Close()
	cmd.Stdout = out
	log, err := cmd.StderrPipe()
	ts.Check(err)
	ts.Check(cmd.Start())
	b.cmd, b.logged = cmd, make(chan struct{})
	ready := make(chan bool, 1)
	go func() {
		defer close(b.logged)
		for lines := bufio.NewScanner(log); lines.Scan(); {
			if strings.Contains(lines.Text(), "postern is ready") {
				ready <- true
			}
		}
		ready <- false
	}()
	ts.Defer(func() { // a script that failed half-way
		if b.cmd != nil {
			b.cmd.Process.Kill()
			<-b.logged
			b.cmd.Wait()
		}
	})
	if !<-ready {
		ts.Fatalf("postern did not become ready")
	}
}

func lookPath(path string) (string, error) {
	for _, dir := range filepath.SplitList(path) {
		file := filepath.Join(dir, "postern")
		if _, err := os.Stat(file); err == nil {
			return file, nil
		}
	}
	return "", exec.ErrNotFound
}

func stopPostern(ts *testscript.TestScript, neg bool, args []string) {
	b := ts.Value(running{}).(*background)
	if neg || len(args) > 0 || b.cmd == nil {
		ts.Fatalf("usage: stop-postern, after start-postern")
	}
	ts.Check(b.cmd.Process.Signal(syscall.SIGTERM))
	<-b.logged
	err := b.cmd.Wait()
	b.cmd = nil
	ts.Check(err)
}

func eventually(ts *testscript.TestScript, neg bool, args []string) {
	if neg || len(args) < 2 {
		ts.Fatalf("usage: eventually pattern command [args...]")
	}
	pattern, err := regexp.Compile("(?m)" + args[0])
	ts.Check(err)
	tick := time.NewTicker(20 * time.Millisecond)
	defer tick.Stop()
	for deadline := time.Now().Add(2 * time.Minute); time.Now().Before(deadline); <-tick.C {
		if err := ts.Exec(args[1], args[2:]...); err == nil && pattern.MatchString(ts.ReadFile("stdout")) {
			return
		}
	}
	ts.Fatalf("the output never matched %s; it ended as\n%s", args[0], ts.ReadFile("stdout"))
}
