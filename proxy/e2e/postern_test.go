package e2e

import (
	"bytes"
	"cmp"
	"fmt"
	"net/http"
	"os"
	"os/exec"
	"path/filepath"
	"strings"
	"sync"
	"syscall"
	"testing"
	"time"

	"postern/proxy/stage"
	"postern/sync/pgtest"
)

// binary is the postern that TestMain built.
var binary string

func TestMain(m *testing.M) {
	if held, code := stage.HoldDisk(); held {
		os.Exit(code)
	}
	dir, err := os.MkdirTemp("", "postern-e2e-")
	if err != nil {
		fmt.Fprintln(os.Stderr, err)
		os.Exit(1)
	}
	defer os.RemoveAll(dir)
	binary = filepath.Join(dir, "postern")
	if out, err := exec.Command("go", "build", "-o", binary, "postern").CombinedOutput(); err != nil {
		fmt.Fprintf(os.Stderr, "building postern: %v\n%s", err, out)
		os.Exit(1)
	}
	pgtest.Main(m) // runs the tests; the exit code is theirs
}

// calm are the settings of most cases: short delays, private targets allowed, and a timeout that no attempt reaches which
// is not meant to. An event that is to time out asks for it with Postern-Timeout: a busy machine can keep any for a second.
const calm = "targets: { allow_private: true }\ndefaults:\n  timeout: 30s\n  retry: { max_attempts: 5, base_delay: 100ms, max_delay: 1s }\n"

// manyRetries is calm where attempts fail until the test has done something, however long that takes.
const manyRetries = "targets: { allow_private: true }\ndefaults:\n  timeout: 30s\n  retry: { max_attempts: 10000, base_delay: 100ms, max_delay: 1s }\n  " + patient + "\n"

// patient is a breaker that does not open in a test about something else.
const patient = "breaker: { failure_threshold: 100000, slow_failure_threshold: 100000 }"

// patience is how long a test waits for what says nothing of time: a busy machine may take very long for anything. What
// Postern promises to do within a time is judged by its own records, or by package intime.
const patience = 2 * time.Minute

// postern is one running process, or one that can be started again on the same data.
type postern struct {
	t       testing.TB
	dir     string // holds postern.yaml and data/
	cmd     *exec.Cmd
	exited  chan struct{}
	code    int
	env     []string
	data    string   // the data directory, where it is not data/
	options []string // of the command run
	binary  string   // the program, where it is not the one that TestMain built
	stderr  *os.File // where the log goes, where it is not to be kept
	attr    *syscall.SysProcAttr

	ingest, admin string // base URLs
	log           *logBuffer
}

type logBuffer struct {
	mu  sync.Mutex
	buf bytes.Buffer
}

func (b *logBuffer) Write(p []byte) (int, error) {
	b.mu.Lock()
	defer b.mu.Unlock()
	return b.buf.Write(p)
}

func (b *logBuffer) String() string {
	b.mu.Lock()
	defer b.mu.Unlock()
	return b.buf.String()
}

// newPostern prepares a Postern with this configuration (without listeners and spool directory) and does not start it.
func newPostern(t testing.TB, config string) *postern {
	t.Helper()
	p := &postern{t: t, dir: t.TempDir(), log: &logBuffer{}}
	p.ingest, p.admin = "http://"+freeAddr(t), "http://"+freeAddr(t)
	p.configure(config)
	t.Cleanup(func() {
		p.kill()
		if t.Failed() {
			t.Logf("postern's log:\n%s", p.log)
		}
	})
	return p
}

// startPostern prepares and starts one, and waits until it is ready.
func startPostern(t testing.TB, config string) *postern {
	t.Helper()
	p := newPostern(t, config)
	p.start()
	return p
}

// configure writes the configuration file.
func (p *postern) configure(config string) {
	p.t.Helper()
	head := fmt.Sprintf("listen: %s\nadmin: { listen: %s }\n", strings.TrimPrefix(p.ingest, "http://"), strings.TrimPrefix(p.admin, "http://"))
	p.writeConfig(head + config)
}

// writeConfig writes all of the configuration file.
func (p *postern) writeConfig(config string) {
	p.t.Helper()
	if err := os.WriteFile(filepath.Join(p.dir, "postern.yaml"), []byte(config), 0o600); err != nil {
		p.t.Fatal(err)
	}
}

func (p *postern) args(args ...string) []string {
	return append(args, "--config", filepath.Join(p.dir, "postern.yaml"), "--data", p.dataDir())
}

// dataDir is where the spool is.
func (p *postern) dataDir() string {
	if p.data != "" {
		return p.data
	}
	return filepath.Join(p.dir, "data")
}

// launch starts the process without waiting for anything.
func (p *postern) launch() {
	p.t.Helper()
	p.cmd = exec.Command(cmp.Or(p.binary, binary), p.args(append([]string{"run"}, p.options...)...)...)
	p.cmd.Dir = p.dir
	p.cmd.Stdout, p.cmd.Stderr = p.log, p.log
	if p.stderr != nil {
		p.cmd.Stderr = p.stderr
	}
	p.cmd.Env = append(os.Environ(), p.env...)
	p.cmd.SysProcAttr = p.attr
	if err := p.cmd.Start(); err != nil {
		p.t.Fatal(err)
	}
	cmd, exited := p.cmd, make(chan struct{})
	p.exited = exited
	go func() {
		cmd.Wait()
		p.code = cmd.ProcessState.ExitCode()
		close(exited)
	}()
}

// start launches and waits for readiness.
func (p *postern) start() {
	p.t.Helper()
	p.launch()
	p.eventually(patience, "postern to be ready", p.ready)
}

// ready tells whether it is, and fails the test where it has ended instead.
func (p *postern) ready() bool {
	p.t.Helper()
	select {
	case <-p.exited:
		p.t.Fatalf("postern exited with %d while starting:\n%s", p.code, p.log)
	default:
	}
	resp, err := http.Get(p.admin + "/readyz")
	if err != nil {
		return false
	}
	resp.Body.Close()
	return resp.StatusCode == 200
}

func (p *postern) signal(s syscall.Signal) {
	p.t.Helper()
	if err := p.cmd.Process.Signal(s); err != nil {
		p.t.Fatal(err)
	}
}

// kill ends it as a power cut would, and waits until it is gone. Without a running process it does nothing.
func (p *postern) kill() {
	if p.cmd == nil || p.exited == nil {
		return
	}
	p.cmd.Process.Signal(syscall.SIGKILL)
	<-p.exited
}

// stop ends it with SIGTERM and returns its exit code.
func (p *postern) stop(limit time.Duration) int {
	p.t.Helper()
	p.signal(syscall.SIGTERM)
	return p.waitExit(limit)
}

func (p *postern) waitExit(limit time.Duration) int {
	p.t.Helper()
	select {
	case <-p.exited:
		return p.code
	case <-time.After(limit):
		p.t.Fatalf("postern still runs after %v:\n%s", limit, p.log)
		return -1
	}
}

// run executes a command of the binary against this Postern and returns what it printed and its exit code.
func (p *postern) run(args ...string) (stdout, stderr string, code int) {
	p.t.Helper()
	cmd := exec.Command(binary, args...)
	cmd.Dir = p.dir
	cmd.Env = append(os.Environ(), "POSTERN_ADMIN="+p.admin, "POSTERN_INGEST="+p.ingest)
	var o, e bytes.Buffer
	cmd.Stdout, cmd.Stderr = &o, &e
	cmd.Run()
	return o.String(), e.String(), cmd.ProcessState.ExitCode()
}

// eventually polls, because it looks at another process from outside.
func (p *postern) eventually(limit time.Duration, what string, ok func() bool) {
	p.t.Helper()
	deadline := time.Now().Add(limit)
	tick := time.NewTicker(10 * time.Millisecond)
	defer tick.Stop()
	for !ok() {
		if time.Now().After(deadline) {
			p.t.Fatalf("waited %v in vain for %s", limit, what)
		}
		<-tick.C
	}
}

// freeAddr finds a port that is free now.
func freeAddr(t testing.TB) string {
	t.Helper()
	addr, err := stage.FreeAddr()
	if err != nil {
		t.Fatal(err)
	}
	return addr
}

// reload sends SIGHUP and waits until the log tells what came of it.
func (p *postern) reload() {
	p.t.Helper()
	told := func() int {
		log := p.log.String()
		return strings.Count(log, "configuration reloaded") + strings.Count(log, "the running configuration stays in force")
	}
	before := told()
	p.signal(syscall.SIGHUP)
	p.eventually(patience, "the reload to be told", func() bool { return told() > before })
}
