package main

import (
	"context"
	"maps"
	"net/http"
	"time"
)

// server is a process that a load is sent to.
type server struct {
	addr, path string
	pid        int
	postern    *postern // nil for a reference
}

func (p *postern) server() server { return server{p.ingest, sinkPath, p.pid(), p} }

func (c *child) server(path string) server { return server{c.addr, path, c.pid(), nil} }

// drive sends a load to a server and tells the rate (requests per second), cpu (processor time of the server per
// request, in microseconds) and, of a Postern, objects and bytes (allocated per request).
func drive(ctx context.Context, s server, spec loadSpec) (loadResult, figures, error) {
	spec.Addr, spec.Path = s.addr, s.path
	var r loadResult
	f, err := s.cost(func() (n int64, err error) {
		r, err = runLoad(ctx, spec)
		return r.Sent, err
	})
	if err != nil {
		return r, nil, err
	}
	f["rate"] = r.rate()
	return r, f, nil
}

// cost is what it takes the server to do something for so many events.
func (s server) cost(do func() (events int64, err error)) (figures, error) {
	var before, after heap
	var err error
	if s.postern != nil {
		if before, err = s.postern.heap(); err != nil {
			return nil, err
		}
	}
	cpuBefore, err := cpuOf(s.pid)
	if err != nil {
		return nil, err
	}
	var n int64
	run := func() (err error) {
		n, err = do()
		return err
	}
	if s.postern != nil {
		err = s.postern.profiled(run)
	} else {
		err = run()
	}
	if err != nil {
		return nil, err
	}
	cpuAfter, err := cpuOf(s.pid)
	if err != nil {
		return nil, err
	}
	f := figures{"cpu": float64(cpuAfter-cpuBefore) / float64(time.Microsecond) / float64(n)}
	if s.postern != nil {
		if after, err = s.postern.heap(); err != nil {
			return nil, err
		}
		maps.Copy(f, after.per(before, n))
	}
	return f, nil
}

// withAnswer starts the handler that only answers 202, for as long as f runs.
func (l *lab) withAnswer(ctx context.Context, f func(server) error) error {
	c, err := startRole(ctx, "answer", nil)
	if err != nil {
		return err
	}
	defer c.stop()
	return f(c.server(sinkPath))
}

// withPaused starts a Postern on an empty spool whose endpoint is paused, for as long as f runs: it accepts, and
// delivers nothing.
func (l *lab) withPaused(with setup) func(context.Context, func(server) error) error {
	return func(ctx context.Context, f func(server) error) error {
		p, end, err := l.startPostern(ctx, nobody, with)
		if err != nil {
			return err
		}
		defer end()
		if err := p.act("pause"); err != nil {
			return err
		}
		return f(p.server())
	}
}

// nobody is an address at which nobody listens.
const nobody = "127.0.0.1:9"

// accepting is a timed closed loop of requests that are answered 202.
func (l *lab) accepting() loadSpec {
	return loadSpec{Conns: l.sizes.conns, Body: l.sizes.body, Want: http.StatusAccepted, For: l.sizes.load, Warm: l.sizes.warm}
}

// driven is a contender: a server that with makes, under a load.
func driven(name string, with func(context.Context, func(server) error) error, spec loadSpec) contender {
	return contender{name, func(ctx context.Context) (f figures, err error) {
		err = with(ctx, func(s server) (err error) {
			_, f, err = drive(ctx, s, spec)
			return err
		})
		return f, err
	}}
}
