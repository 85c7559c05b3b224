package main

import (
	"context"
	"fmt"
	"net/http"
	"time"
)

func (l *lab) aboutDeliver() string {
	return fmt.Sprintf("%s events over %d connections, closed loop, POST of %d bytes and GET with a target of %d; from the first request to the last "+
		"receipt. concurrency: 256, the endpoint's 128. The relay is net/http's server and client with Postern's own settings in one process that only "+
		"passes on: what this stack can do at best. Neither it nor httputil.ReverseProxy keeps anything. The tuned one keeps %d connections to the receiver instead of two.",
		number(float64(l.sizes.deliver)), l.sizes.conns, l.sizes.body, getTarget, l.sizes.conns)
}

// deliver compares accepting, keeping and delivering with passing on at once.
func (l *lab) deliver(ctx context.Context) error {
	receiver, err := startRole(ctx, "receiver", nil)
	if err != nil {
		return err
	}
	defer receiver.stop()
	const bare, bareGet, asIs, tuned, kept, keptGet = "relay", "relay GET", "ReverseProxy", "tuned ReverseProxy", "postern", "postern GET"
	post, get := l.burst(), l.burst()
	get.Get = true
	t, err := l.turns(ctx,
		l.through(bare, receiver, l.byRole("relay", l.sizes.conns), post), l.through(kept, receiver, l.byPostern(setup{}), post),
		l.through(asIs, receiver, l.byRole("proxy", 0), answered200(post)), l.through(tuned, receiver, l.byRole("proxy", l.sizes.conns), answered200(post)),
		l.through(bareGet, receiver, l.byRole("relay", l.sizes.conns), get), l.through(keptGet, receiver, l.byPostern(setup{}), get))
	if err != nil {
		return err
	}
	rate, objects, bytes := t.of(kept, "rate"), t.of(kept, "objects"), t.of(kept, "bytes")
	l.add(
		row{Name: "accepted and delivered", Unit: "/s", Value: over(rate)}.beside(bare, t.of(bare, "rate")).atLeast(0.8),
		row{Name: "accepted and delivered, GET", Unit: "/s", Value: over(t.of(keptGet, "rate"))}.beside(bare, t.of(bareGet, "rate")),
		row{Name: "the same, beside a proxy", Unit: "/s", Value: over(rate)}.beside(asIs, t.of(asIs, "rate")).atLeast(2),
		row{Name: "the same, beside a tuned one", Unit: "/s", Value: over(rate)}.beside(tuned, t.of(tuned, "rate")),
		row{Name: "the relay itself", Unit: "/s", Value: over(t.of(bare, "rate"))}.beside(asIs, t.of(asIs, "rate")),
		row{Name: "CPU per delivered", Unit: "µs", Value: over(t.of(kept, "cpu"))}.beside(bare, t.of(bare, "cpu")),
		row{Name: "allocations per delivered", Value: over(objects)}.beside("at first", l.constant(deliverObjectsAtFirst)).atMost(0.5),
		row{Name: "allocated per delivered", Unit: "B", Value: over(bytes)}.beside("at first", l.constant(deliverBytesAtFirst)).atMost(0.5),
	)
	return nil
}

// burst is a counted closed loop of requests that are answered 202.
func (l *lab) burst() loadSpec {
	return loadSpec{Conns: l.sizes.conns, Body: l.sizes.body, Want: http.StatusAccepted, Count: l.sizes.deliver}
}

// answered200 is the same for those who pass the receiver's answer back.
func answered200(s loadSpec) loadSpec {
	s.Want = http.StatusOK
	return s
}

// way is something that takes requests and has them reach a receiver. end is called when it has been measured.
type way func(ctx context.Context, receiver string) (s server, end func(), err error)

// byRole is a reference that keeps so many connections to the receiver.
func (l *lab) byRole(role string, conns int) way {
	return func(ctx context.Context, receiver string) (server, func(), error) {
		c, err := startRole(ctx, role, proxySpec{Receiver: receiver, Conns: conns})
		if err != nil {
			return server{}, nil, err
		}
		return c.server(sinkPath), c.stop, nil
	}
}

// byPostern is a fresh Postern.
func (l *lab) byPostern(with setup) way {
	return func(ctx context.Context, receiver string) (server, func(), error) {
		p, end, err := l.startPostern(ctx, receiver, with)
		if err != nil {
			return server{}, nil, err
		}
		return p.server(), end, nil
	}
}

// through is a contender: a way, and a counted load that has to arrive.
func (l *lab) through(name string, receiver *child, by way, spec loadSpec) contender {
	return contender{name, func(ctx context.Context) (figures, error) {
		s, end, err := by(ctx, receiver.addr)
		if err != nil {
			return nil, err
		}
		defer end()
		return pass(ctx, receiver, s, spec)
	}}
}

// pass sends all events of a load to a server and waits until the receiver has each of them, once.
func pass(ctx context.Context, receiver *child, s server, spec loadSpec) (figures, error) {
	var got received
	if err := receiver.ask("reset", &got); err != nil {
		return nil, err
	}
	spec.Addr = s.addr
	if spec.Path == "" {
		spec.Path = s.path
	}
	var sent loadResult
	f, err := s.cost(func() (n int64, err error) {
		if sent, err = runLoad(ctx, spec); err != nil {
			return 0, err
		}
		got, err = receiver.await(ctx, spec.Count)
		return spec.Count, err
	})
	if err != nil {
		return nil, err
	}
	if got.Events != spec.Count || got.Requests != spec.Count {
		return nil, fmt.Errorf("%d events were sent; the receiver saw %d in %d requests", spec.Count, got.Events, got.Requests)
	}
	f["rate"] = float64(spec.Count) / time.Duration(got.Last-sent.Started).Seconds()
	return f, nil
}

// awaitLimit is how long a receiver may wait for what was promised.
const awaitLimit = 5 * time.Minute

// await waits until the receiver has n events. A receiver that waits too long is ended, and the run with it.
func (c *child) await(ctx context.Context, n int64) (received, error) {
	limit, cancel := context.WithTimeout(ctx, awaitLimit)
	defer cancel()
	defer context.AfterFunc(limit, func() {
		if ctx.Err() == nil {
			c.cmd.Process.Kill()
		}
	})()
	var got received
	if err := c.ask(fmt.Sprintf("wait %d", n), &got); err != nil {
		return got, fmt.Errorf("waiting for %d events at the receiver: %w", n, err)
	}
	return got, nil
}
