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
	profiles      func() string // names the next profile's file; nil: none are wanted
}

// sink is the name of the only endpoint. Its path is what the load generator posts to.
const sink, sinkPath = "sink", "/to/sink"

// configuration is what differs from the defaults, and all of it is said in the documentation: room for a million
// events of one endpoint, and as many connections to the receiver as there are clients.
const configuration = `listen: %s
admin: { listen: %s%s }
log: { level: warn }
concurrency: 256
spool: { dir: %q, max_bytes: 32GiB, max_endpoint_share: 1.0%s }
endpoints:
%s`

// named is an endpoint of that configuration.
const named = "  - { name: %s, url: \"http://%s/sink\", concurrency: 128 }\n"

// setup is what is special about one Postern, as text of its configuration.
type setup struct {
	spool     string // further settings of the spool, each with ", " in front
	endpoints string // further lines of the list of endpoints
	more      string // further lines at the end
}

// newPostern prepares one that delivers to a receiver and does not start it.
func (l *lab) newPostern(dir, receiver string, with setup) (*postern, error) {
	p := &postern{binary: l.binary, dir: dir, profiles: l.profileNames(), client: http.Client{Timeout: 10 * time.Second}}
	for _, addr := range []*string{&p.ingest, &p.admin} {
		ln, err := net.Listen("tcp", "127.0.0.1:0")
		if err != nil {
			return nil, err
		}
		defer ln.Close()
		*addr = ln.Addr().String()
	}
	pprof := ""
	if p.profiles != nil {
		pprof = ", pprof: true"
	}
	p.text = fmt.Sprintf(configuration, p.ingest, p.admin, pprof, p.spool(), with.spool, fmt.Sprintf(named, sink, receiver)+with.endpoints)
	return p, p.configure(with.more)
}

func (p *postern) spool() string { return filepath.Join(p.dir, "data") }

// configure writes the configuration, with further lines.
func (p *postern) configure(more string) error {
	return os.WriteFile(p.config(), []byte(p.text+more), 0o600)
}

func (p *postern) config() string { return filepath.Join(p.dir, "postern.yaml") }

// startPostern prepares and starts one in a fresh directory. end stops it and removes everything.
func (l *lab) startPostern(ctx context.Context, receiver string, with setup) (p *postern, end func(), err error) {
	dir, remove, err := l.space()
	if err != nil {
		return nil, nil, err
	}
	p, err = l.newPostern(dir, receiver, with)
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

// act pauses or resumes the usual endpoint.
func (p *postern) act(action string) error { return p.actOn(sink, action) }

func (p *postern) actOn(endpoint, action string) error {
	resp, err := p.client.Post("http://"+p.admin+"/api/v1/endpoints/"+endpoint+"/"+action, "application/json", nil)
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
	Awaiting int64 `json:"awaiting_retry"`
	InFlight int64 `json:"in_flight"`
	Sync     struct {
		Connected bool
		RowsTotal int64 `json:"rows_total"`
		Rejected  int64 `json:"rejected_rows"`
	}
}

// waiting are all events that are not finished.
func (c counts) waiting() int64 { return c.Pending + c.Awaiting + c.InFlight }

func (p *postern) counts() (c counts, err error) {
	resp, err := p.client.Get("http://" + p.admin + "/api/v1/status")
	if err != nil {
		return c, err
	}
	defer resp.Body.Close()
	return c, json.NewDecoder(resp.Body).Decode(&c)
}

// until asks for the counts until they are as wanted, or until nobody believes in it any more.
func (p *postern) until(ctx context.Context, what string, ok func(counts) bool) error {
	limit, cancel := context.WithTimeout(ctx, awaitLimit)
	defer cancel()
	for {
		c, err := p.counts()
		if err != nil || ok(c) {
			return err
		}
		if err := sleep(limit, 10*time.Millisecond); err != nil {
			return fmt.Errorf("waiting for postern to %s: %w; now %+v", what, err, c)
		}
	}
}

// settle waits until nothing is in flight.
func (p *postern) settle(ctx context.Context) error {
	return p.until(ctx, "end its attempts", func(c counts) bool { return c.InFlight == 0 })
}
