package torture

import (
	"bytes"
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"net/http"
	"os"
	"os/exec"
	"path/filepath"
	"strings"
	"syscall"
	"time"

	"postern/proxy/stage"
)

// end is one end of the process: what was on its way may have lost its record.
type end struct {
	sent, done time.Time // the signal, and when the process was gone
	kill       bool
	grace      bool // it took so long that attempts were cut
}

// process is one Postern that is started and ended over and over on the same data.
type process struct {
	dir, data     string
	ingest, admin string // host:port
	program       string // with a clock, for a while
	env           []string

	cmd    *exec.Cmd
	exited chan struct{}
	code   int
	log    *os.File // its own handle for reading below, since the process moves this one's place
	said   *os.File
	ends   []end
	client http.Client
}

// grace is the configuration's shutdown_grace.
const grace = 1500 * time.Millisecond

func newProcess(dir, data string) (*process, error) {
	p := &process{dir: dir, data: data, program: binary, client: http.Client{Timeout: time.Minute}}
	for _, addr := range []*string{&p.ingest, &p.admin} {
		a, err := stage.FreeAddr()
		if err != nil {
			return nil, err
		}
		*addr = a
	}
	var err error
	name := filepath.Join(dir, "log")
	if p.log, err = os.OpenFile(name, os.O_CREATE|os.O_APPEND|os.O_WRONLY, 0o600); err != nil {
		return nil, err
	}
	p.said, err = os.Open(name)
	return p, err
}

func (p *process) config() string { return filepath.Join(p.dir, "postern.yaml") }
func (p *process) pid() int       { return p.cmd.Process.Pid }

// launch starts the process without waiting for anything.
func (p *process) launch() error {
	p.cmd = exec.Command(p.program, "run", "--config", p.config(), "--data", p.data)
	p.cmd.Dir = p.dir
	p.cmd.Stdout, p.cmd.Stderr = p.log, p.log
	p.cmd.Env = append(os.Environ(), p.env...)
	if err := p.cmd.Start(); err != nil {
		return err
	}
	cmd, exited := p.cmd, make(chan struct{})
	p.exited = exited
	go func() {
		cmd.Wait()
		p.code = cmd.ProcessState.ExitCode()
		close(exited)
	}()
	return nil
}

// start launches and waits until it is ready.
func (p *process) start() error {
	if err := p.launch(); err != nil {
		return err
	}
	return p.awaitReady(30 * time.Second)
}

func (p *process) awaitReady(limit time.Duration) error {
	return poll(limit, "postern to be ready", func() (bool, error) {
		if !p.running() {
			return false, fmt.Errorf("postern ended with code %d instead of becoming ready; the end of its log:\n%s", p.code, p.lastWords())
		}
		resp, err := p.client.Get("http://" + p.admin + "/readyz")
		if err != nil {
			return false, nil
		}
		resp.Body.Close()
		return resp.StatusCode == http.StatusOK, nil
	})
}

// lastWords is the end of the log.
func (p *process) lastWords() string {
	var b [2048]byte
	info, err := p.said.Stat()
	if err != nil {
		return err.Error()
	}
	n, _ := p.said.ReadAt(b[:], max(0, info.Size()-int64(len(b))))
	return string(b[:n])
}

func (p *process) running() bool {
	if p.exited == nil {
		return false
	}
	select {
	case <-p.exited:
		return false
	default:
		return true
	}
}

// kill ends it as a power cut would, and waits until it is gone.
func (p *process) kill() {
	if p.exited == nil {
		return
	}
	e := end{sent: time.Now(), kill: true}
	p.cmd.Process.Kill()
	<-p.exited
	e.done = time.Now()
	p.ends = append(p.ends, e)
}

// stop ends it with SIGTERM.
func (p *process) stop() error {
	e := end{sent: time.Now()}
	if err := p.cmd.Process.Signal(syscall.SIGTERM); err != nil {
		return err
	}
	select {
	case <-p.exited:
	case <-time.After(20 * time.Second):
		return errors.New("postern still runs 20 s after SIGTERM")
	}
	e.done = time.Now()
	e.grace = e.done.Sub(e.sent) >= grace
	p.ends = append(p.ends, e)
	if p.code != 0 {
		return fmt.Errorf("exit code %d after SIGTERM", p.code)
	}
	return nil
}

// api calls the admin API and decodes its answer into out, which may be nil.
func (p *process) api(method, path, body string, out any) (status int, err error) {
	req, err := http.NewRequest(method, "http://"+p.admin+"/api/v1/"+path, strings.NewReader(body))
	if err != nil {
		return 0, err
	}
	resp, err := p.client.Do(req)
	if err != nil {
		return 0, err
	}
	defer resp.Body.Close()
	b, err := io.ReadAll(resp.Body)
	if err == nil && out != nil && resp.StatusCode < 300 {
		err = json.Unmarshal(b, out)
	}
	return resp.StatusCode, err
}

// checkSpool runs postern spool check on a closed spool.
func (p *process) checkSpool() error {
	cmd := exec.Command(binary, "spool", "check", "--data", p.data, "--json")
	var out, errs bytes.Buffer
	cmd.Stdout, cmd.Stderr = &out, &errs
	if err := cmd.Run(); err != nil {
		return fmt.Errorf("postern spool check: %w\n%s%s", err, out.String(), errs.String())
	}
	return nil
}

// help is what the binary says of a command; names and values that follow it are left out.
func (p *process) help(words []string) string {
	for n, word := range words {
		if word == strings.ToUpper(word) || strings.HasPrefix(word, "-") {
			words = words[:n]
			break
		}
	}
	out, _ := exec.Command(binary, append(words[:len(words):len(words)], "--help")...).CombinedOutput()
	return string(out)
}

// poll asks until the answer is yes or an error, because it looks at another process from outside.
func poll(limit time.Duration, what string, ok func() (bool, error)) error {
	deadline := time.Now().Add(limit)
	tick := time.NewTicker(5 * time.Millisecond)
	defer tick.Stop()
	for {
		done, err := ok()
		if err != nil || done {
			return err
		}
		if time.Now().After(deadline) {
			return fmt.Errorf("waited %v in vain for %s", limit, what)
		}
		<-tick.C
	}
}
