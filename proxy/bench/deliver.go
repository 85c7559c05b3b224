package main

import (
	"context"
	"fmt"
	"net/http"
	"time"
)

// deliver compares accepting, keeping and delivering with passing on at once.
func (l *lab) deliver(ctx context.Context) error {
	sinkRole, err := startRole(ctx, "receiver", nil)
	if err != nil {
		return err
	}
	defer sinkRole.stop()
	ways := []func(context.Context, *child) (float64, float64, error){l.throughProxy(0), l.throughProxy(l.sizes.conns), l.throughPostern}
	var rate, cpu [3][]float64
	for round := range l.rounds {
		l.say("deliver, round %d of %d", round+1, l.rounds)
		for i, through := range ways {
			r, c, err := through(ctx, sinkRole)
			if err != nil {
				return err
			}
			rate[i], cpu[i] = append(rate[i], r), append(cpu[i], c)
		}
	}
	what := fmt.Sprintf("%s events on %d connections, first request to last receipt; config: concurrency 256, endpoint 128",
		number(float64(l.sizes.deliver)), l.sizes.conns)
	const asIs, tuned = "ReverseProxy", "tuned ReverseProxy"
	l.add(
		row{Name: "accepted and delivered", Unit: "/s", Value: over(rate[2]), What: what}.beside(asIs, rate[0]).ratioAtLeast(1.2),
		row{Name: "the same", Unit: "/s", Value: over(rate[2]), What: "beside one whose transport keeps as many connections as it needs"}.
			beside(tuned, rate[1]),
		row{Name: "CPU per delivered", Unit: "µs", Value: over(cpu[2]), What: "user and system time of the server, same load"}.beside(tuned, cpu[1]),
	)
	return nil
}

// throughProxy passes on by the reverse proxy, with a transport that keeps so many connections (0: as it comes).
func (l *lab) throughProxy(conns int) func(context.Context, *child) (rate, cpu float64, err error) {
	return func(ctx context.Context, sinkRole *child) (rate, cpu float64, err error) {
		proxy, err := startRole(ctx, "proxy", proxySpec{Receiver: sinkRole.addr, Conns: conns})
		if err != nil {
			return 0, 0, err
		}
		defer proxy.stop()
		return l.through(ctx, sinkRole, server{proxy.addr, "/sink", proxy.pid()}, http.StatusOK)
	}
}

func (l *lab) throughPostern(ctx context.Context, sinkRole *child) (rate, cpu float64, err error) {
	p, end, err := l.startPostern(ctx, sinkRole.addr)
	if err != nil {
		return 0, 0, err
	}
	defer end()
	return l.through(ctx, sinkRole, server{p.ingest, sinkPath, p.pid()}, http.StatusAccepted)
}

// through sends all events and waits until the receiver has each of them.
func (l *lab) through(ctx context.Context, sinkRole *child, s server, want int) (rate, cpu float64, err error) {
	var got received
	if err := sinkRole.ask("reset", &got); err != nil {
		return 0, 0, err
	}
	before, err := cpuOf(s.pid)
	if err != nil {
		return 0, 0, err
	}
	n := l.sizes.deliver
	sent, err := runLoad(ctx, loadSpec{Addr: s.addr, Path: s.path, Conns: l.sizes.conns, Body: l.sizes.body, Want: want, Count: n})
	if err != nil {
		return 0, 0, err
	}
	if got, err = sinkRole.await(ctx, n); err != nil {
		return 0, 0, err
	}
	after, err := cpuOf(s.pid)
	if err != nil {
		return 0, 0, err
	}
	if got.Events != n || got.Requests != n {
		return 0, 0, fmt.Errorf("%d events were sent; the receiver saw %d in %d requests", n, got.Events, got.Requests)
	}
	return float64(n) / time.Duration(got.Last-sent.Started).Seconds(), float64((after - before).Microseconds()) / float64(n), nil
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
