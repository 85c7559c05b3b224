package main

import (
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
	"syscall"
	"time"
)

// postern is the program under test: one process, or one that can be started again on the same spool.
type postern struct {
	binary, dir   string
	ingest, admin string // host:port
	text          string // of its configuration, as far as it is the same for all
	cmd           *exec.Cmd
	exited        chan struct{}
	client        http.Client
}

// sink is the name of the only endpoint. Its path is what the load generator posts to.
const sink, sinkPath = "sink", "/to/sink"

// configuration is what differs from the defaults, and all of it is said in the documentation: room for a million
// events of one endpoint, and as many connections to the receiver as there are clients.
const configuration = `listen: %s
admin: { listen: %s }
log: { level: warn }
concurrency: 256
spool: { dir: %q, max_bytes: 16GiB, max_endpoint_share: 1.0 }
endpoints:
  - { name: sink, url: "http://%s/sink", concurrency: 128 }
`

// newPostern prepares one that delivers to a receiver and does not start it. more are further lines of its configuration.
func (l *lab) newPostern(dir, receiver string, more ...string) (*postern, error) {
	p := &postern{binary: l.binary, dir: dir, client: http.Client{Timeout: 10 * time.Second}}
	for _, addr := range []*string{&p.ingest, &p.admin} {
		ln, err := net.Listen("tcp", "127.0.0.1:0")
		if err != nil {
			return nil, err
		}
		defer ln.Close()
		*addr = ln.Addr().String()
	}
	p.text = fmt.Sprintf(configuration, p.ingest, p.admin, filepath.Join(dir, "data"), receiver)
	return p, p.configure(more...)
}

// configure writes the configuration, with further lines.
func (p *postern) configure(more ...string) error {
	return os.WriteFile(p.config(), []byte(p.text+strings.Join(more, "")), 0o600)
}

func (p *postern) config() string { return filepath.Join(p.dir, "postern.yaml") }

// startPostern prepares and starts one in a fresh directory. end stops it and removes everything.
func (l *lab) startPostern(ctx context.Context, receiver string, more ...string) (p *postern, end func(), err error) {
	dir, remove, err := l.space()
	if err != nil {
		return nil, nil, err
	}
	p, err = l.newPostern(dir, receiver, more...)
	if err == nil {
		_, err = p.start(ctx)
	}
	if err != nil {
		remove()
		return nil, nil, err
	}
	return p, func() { p.kill(); remove() }, nil
}

// readyLimit is how long a start may take before the run is given up.
const readyLimit = 2 * time.Minute

// start starts the process and returns how long it took until /readyz said 200.
func (p *postern) start(ctx context.Context) (time.Duration, error) {
	log, err := os.OpenFile(p.log(), os.O_CREATE|os.O_APPEND|os.O_WRONLY, 0o600)
	if err != nil {
		return 0, err
	}
	defer log.Close()
	p.cmd = exec.CommandContext(ctx, p.binary, "run", "--config", p.config())
	p.cmd.Stdout, p.cmd.Stderr = log, log
	apart(p.cmd)
	begin := time.Now()
	if err := p.cmd.Start(); err != nil {
		return 0, err
	}
	cmd, exited := p.cmd, make(chan struct{})
	p.exited = exited
	go func() {
		cmd.Wait()
		close(exited)
	}()
	if err := p.waitReady(begin); err != nil {
		p.kill()
		return 0, err
	}
	return time.Since(begin), nil
}

func (p *postern) log() string { return filepath.Join(p.dir, "log") }

func (p *postern) waitReady(begin time.Time) error {
	tick := time.NewTicker(2 * time.Millisecond)
	defer tick.Stop()
	for time.Since(begin) < readyLimit {
		select {
		case <-p.exited:
			text, _ := os.ReadFile(p.log())
			return fmt.Errorf("postern ended while it was starting: %s", text)
		case <-tick.C:
		}
		resp, err := p.client.Get("http://" + p.admin + "/readyz")
		if err != nil {
			continue
		}
		resp.Body.Close()
		if resp.StatusCode == http.StatusOK {
			return nil
		}
	}
	return fmt.Errorf("postern was not ready after %v", readyLimit)
}

// kill ends it as a power cut would, and waits until it is gone.
func (p *postern) kill() {
	p.cmd.Process.Kill()
	<-p.exited
}

// stop ends it in order.
func (p *postern) stop() error {
	if err := p.cmd.Process.Signal(syscall.SIGTERM); err != nil {
		return err
	}
	select {
	case <-p.exited:
		return nil
	case <-time.After(time.Minute):
		p.kill()
		return fmt.Errorf("postern did not stop within a minute")
	}
}

func (p *postern) pid() int { return p.cmd.Process.Pid }

// act pauses or resumes the endpoint.
func (p *postern) act(action string) error {
	resp, err := p.client.Post("http://"+p.admin+"/api/v1/endpoints/"+sink+"/"+action, "application/json", nil)
	if err != nil {
		return err
	}
	defer resp.Body.Close()
	if resp.StatusCode/100 != 2 {
		text, _ := io.ReadAll(io.LimitReader(resp.Body, 1000))
		return fmt.Errorf("%s: status %d: %s", action, resp.StatusCode, text)
	}
	return nil
}

// counts is the part of GET status that is looked at.
type counts struct {
	Pending  int64 `json:"pending"`
	InFlight int64 `json:"in_flight"`
	Sync     struct {
		Connected bool
		RowsTotal int64 `json:"rows_total"`
		Rejected  int64 `json:"rejected_rows"`
	}
}

func (p *postern) counts() (c counts, err error) {
	resp, err := p.client.Get("http://" + p.admin + "/api/v1/status")
	if err != nil {
		return c, err
	}
	defer resp.Body.Close()
	return c, json.NewDecoder(resp.Body).Decode(&c)
}

// settle waits until nothing is in flight.
func (p *postern) settle() error {
	for range 1000 {
		c, err := p.counts()
		if err != nil || c.InFlight == 0 {
			return err
		}
		time.Sleep(10 * time.Millisecond)
	}
	return fmt.Errorf("attempts are still in flight after ten seconds")
}
