package e2e

import (
	"bytes"
	"cmp"
	"context"
	"encoding/json"
	"fmt"
	"io"
	"net"
	"net/http"
	"os"
	"os/exec"
	"path/filepath"
	"strings"
	"sync"
	"syscall"
	"testing"
	"time"
)

// binary is the postern that TestMain built.
var binary string

func TestMain(m *testing.M) {
	if dir := os.Getenv(holdDiskEnv); dir != "" {
		os.Exit(holdDisk(dir))
	}
	os.Exit(func() int {
		dir, err := os.MkdirTemp("", "postern-e2e-")
		if err != nil {
			fmt.Fprintln(os.Stderr, err)
			return 1
		}
		defer os.RemoveAll(dir)
		binary = filepath.Join(dir, "postern")
		build := exec.Command("go", "build", "-o", binary, "postern")
		if out, err := build.CombinedOutput(); err != nil {
			fmt.Fprintf(os.Stderr, "building postern: %v\n%s", err, out)
			return 1
		}
		return m.Run()
	}())
}

// fast are the settings of most cases: short delays, private targets allowed.
const fast = `
targets: { allow_private: true }
defaults:
  timeout: 1s
  retry: { max_attempts: 5, base_delay: 100ms, max_delay: 1s }
`

// patient is a breaker that does not open in a test about something else.
const patient = "breaker: { failure_threshold: 100000, slow_failure_threshold: 100000 }"

// postern is one running process, or one that can be started again on the same data.
type postern struct {
	t      testing.TB
	dir    string // holds postern.yaml and data/
	cmd    *exec.Cmd
	exited chan struct{}
	code   int
	env    []string
	data   string // the data directory, where it is not data/
	binary string // the program, where it is not the one that TestMain built

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
	p.cmd = exec.Command(cmp.Or(p.binary, binary), p.args("run")...)
	p.cmd.Dir = p.dir
	p.cmd.Stdout, p.cmd.Stderr = p.log, p.log
	p.cmd.Env = append(os.Environ(), p.env...)
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
	p.eventually(15*time.Second, "postern to be ready", func() bool {
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
	})
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

// answer is what a client of Postern got.
type answer struct {
	Status int
	Header http.Header
	Body   []byte
	ID     string // the event ID of the header
}

// client never follows anything and never keeps a connection longer than a test.
var client = &http.Client{Timeout: 30 * time.Second, Transport: &http.Transport{DisableCompression: true, MaxIdleConnsPerHost: 64}, CheckRedirect: func(*http.Request, []*http.Request) error { return http.ErrUseLastResponse }}

// send hands a request to ingest: path is what follows http://localhost:8089, headers are "Name: value".
func (p *postern) send(method, path, body string, headers ...string) answer {
	p.t.Helper()
	a, err := p.try(method, path, body, headers...)
	if err != nil {
		p.t.Fatal(err)
	}
	return a
}

func (p *postern) try(method, path, body string, headers ...string) (answer, error) {
	req, err := http.NewRequest(method, p.ingest, strings.NewReader(body))
	if err != nil {
		return answer{}, err
	}
	req.URL.Opaque = path // as it is, byte for byte
	for _, h := range headers {
		name, value, _ := strings.Cut(h, ": ")
		req.Header.Add(name, value)
	}
	resp, err := client.Do(req)
	if err != nil {
		return answer{}, err
	}
	defer resp.Body.Close()
	b, err := io.ReadAll(resp.Body)
	return answer{resp.StatusCode, resp.Header, b, resp.Header.Get("Postern-Event-Id")}, err
}

// accept sends and insists on a 202. It returns the event ID.
func (p *postern) accept(method, path, body string, headers ...string) string {
	p.t.Helper()
	a := p.send(method, path, body, headers...)
	if a.Status != 202 {
		p.t.Fatalf("%s %s: status %d, want 202: %s", method, path, a.Status, a.Body)
	}
	return a.ID
}

// api calls the admin API and decodes its JSON into out, which may be nil.
func (p *postern) api(method, path, body string, out any) int {
	p.t.Helper()
	req, err := http.NewRequestWithContext(context.Background(), method, p.admin+"/api/v1/"+path, strings.NewReader(body))
	if err != nil {
		p.t.Fatal(err)
	}
	if body != "" {
		req.Header.Set("Content-Type", "application/json")
	}
	resp, err := client.Do(req)
	if err != nil {
		p.t.Fatal(err)
	}
	defer resp.Body.Close()
	b, _ := io.ReadAll(resp.Body)
	if out != nil {
		if err := json.Unmarshal(b, out); err != nil {
			p.t.Fatalf("%s %s: %v in %s", method, path, err, b)
		}
	}
	return resp.StatusCode
}

// event is one event as the API shows it.
type event struct {
	ID           string
	Endpoint     string
	State        string
	Method       string
	URL          string
	AttemptCount int    `json:"attempt_count"`
	Charged      int    `json:"charged_attempts"`
	DeadReason   string `json:"dead_reason"`
	Attempts     []struct {
		Number     int
		StartedAt  time.Time `json:"started_at"`
		DurationMs float64   `json:"duration_ms"`
		StatusCode int       `json:"status_code"`
		Error      string
	}

	// What follows shows with reveal=1 alone.
	Target       string
	Headers      []struct{ Name, Value string }
	Body         string
	BodyEncoding string `json:"body_encoding"`
	Answer       struct {
		StatusCode int `json:"status_code"`
		Location   string
		Body       string
	}
}

// reveal shows one event whole.
func (p *postern) reveal(id string) event {
	p.t.Helper()
	var e event
	if code := p.api("GET", "events/"+id+"?reveal=1", "", &e); code != 200 {
		p.t.Fatalf("reveal %s: status %d", id, code)
	}
	return e
}

// waitState waits until an event is in this state.
func (p *postern) waitState(id, state string, limit time.Duration) event {
	p.t.Helper()
	var e event
	p.eventually(limit, "event "+id+" to be "+state, func() bool {
		e = event{}
		p.api("GET", "events/"+id, "", &e)
		return e.State == state
	})
	return e
}

// waiting is how many events are neither delivered nor dead letters.
func (p *postern) waiting() int {
	p.t.Helper()
	var s struct {
		Pending       int
		AwaitingRetry int `json:"awaiting_retry"`
		InFlight      int `json:"in_flight"`
	}
	p.api("GET", "status", "", &s)
	return s.Pending + s.AwaitingRetry + s.InFlight
}

// settled waits until every event is delivered or a dead letter.
func (p *postern) settled(limit time.Duration) {
	p.t.Helper()
	p.eventually(limit, "every event to be delivered or a dead letter", func() bool { return p.waiting() == 0 })
}

// probe is the status of one of the probes.
func (p *postern) probe(path string) int {
	p.t.Helper()
	resp, err := client.Get(p.admin + path)
	if err != nil {
		p.t.Fatal(err)
	}
	resp.Body.Close()
	return resp.StatusCode
}

// metric sums the samples of one metric whose line contains every one of the given parts.
func (p *postern) metric(name string, parts ...string) float64 {
	p.t.Helper()
	resp, err := client.Get(p.admin + "/metrics")
	if err != nil {
		p.t.Fatal(err)
	}
	defer resp.Body.Close()
	b, _ := io.ReadAll(resp.Body)
	sum := 0.0
next:
	for line := range strings.Lines(string(b)) {
		rest, ok := strings.CutPrefix(line, name)
		if !ok || rest[0] != '{' && rest[0] != ' ' {
			continue
		}
		for _, part := range parts {
			if !strings.Contains(line, part) {
				continue next
			}
		}
		var v float64
		fmt.Sscan(line[strings.LastIndexByte(line, ' ')+1:], &v)
		sum += v
	}
	return sum
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

// get is the body of a page of the admin listener.
func (p *postern) get(path string) string {
	p.t.Helper()
	resp, err := client.Get(p.admin + path)
	if err != nil {
		p.t.Fatal(err)
	}
	defer resp.Body.Close()
	b, err := io.ReadAll(resp.Body)
	if err != nil {
		p.t.Fatal(err)
	}
	return string(b)
}

// freeAddr finds a port that is free now.
func freeAddr(t testing.TB) string {
	t.Helper()
	ln, err := net.Listen("tcp", "127.0.0.1:0")
	if err != nil {
		t.Fatal(err)
	}
	defer ln.Close()
	return ln.Addr().String()
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
	p.eventually(5*time.Second, "the reload to be told", func() bool { return told() > before })
}
