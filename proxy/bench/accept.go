package main

import (
	"context"
	"fmt"
	"net/http"
	"time"
)

// server is a process that a load is sent to.
type server struct {
	addr, path string
	pid        int
}

// loaded is what one load came to: requests per second, and processor time of the server per request, in microseconds.
type loaded struct {
	loadResult
	cpu float64
}

// drive sends a load to a server and reads what it cost it.
func drive(ctx context.Context, s server, spec loadSpec) (loaded, error) {
	spec.Addr, spec.Path = s.addr, s.path
	before, err := cpuOf(s.pid)
	if err != nil {
		return loaded{}, err
	}
	r, err := runLoad(ctx, spec)
	if err != nil {
		return loaded{}, err
	}
	after, err := cpuOf(s.pid)
	return loaded{r, float64((after - before).Microseconds()) / float64(r.Sent)}, err
}

// withAnswer starts the handler that only answers 202, for as long as f runs.
func withAnswer(ctx context.Context, f func(server) error) error {
	c, err := startRole(ctx, "answer", nil)
	if err != nil {
		return err
	}
	defer c.stop()
	return f(server{c.addr, sinkPath, c.pid()})
}

// withPaused starts a Postern on an empty spool whose endpoint is paused: it accepts, and delivers nothing.
func (l *lab) withPaused(ctx context.Context, f func(server) error) error {
	p, end, err := l.startPostern(ctx, "127.0.0.1:9")
	if err != nil {
		return err
	}
	defer end()
	if err := p.act("pause"); err != nil {
		return err
	}
	return f(server{p.ingest, sinkPath, p.pid()})
}

// accept compares durable acknowledgements with a handler that does nothing else.
func (l *lab) accept(ctx context.Context) error {
	spec := loadSpec{Conns: l.sizes.conns, Body: l.sizes.body, Want: http.StatusAccepted, For: l.sizes.load, Warm: l.sizes.warm}
	var rate, cpu [2][]float64
	for round := range l.rounds {
		l.say("accept, round %d of %d", round+1, l.rounds)
		for i, with := range []func(context.Context, func(server) error) error{withAnswer, l.withPaused} {
			err := with(ctx, func(s server) error {
				r, err := drive(ctx, s, spec)
				rate[i], cpu[i] = append(rate[i], r.rate()), append(cpu[i], r.cpu)
				return err
			})
			if err != nil {
				return err
			}
		}
	}
	what := fmt.Sprintf("%d connections, %d-byte JSON; each 202 after commit and sync; endpoint paused", spec.Conns, spec.Body)
	l.add(
		row{Name: "durable accepts", Unit: "/s", Value: over(rate[1]), What: what}.beside("202 only", rate[0]).ratioAtLeast(0.65),
		row{Name: "CPU per accept", Unit: "µs", Value: over(cpu[1]), What: "user and system time of the server, same load"}.beside("202 only", cpu[0]),
	)
	return nil
}

// latency measures acknowledgements at a rate that does not depend on how fast they come.
func (l *lab) latency(ctx context.Context) error {
	spec := loadSpec{Conns: l.sizes.conns, Body: l.sizes.body, Want: http.StatusAccepted, For: l.sizes.open, Warm: l.sizes.warm, Rate: 1000}
	return l.latencies(ctx, "latency", spec, [2]string{"ack latency p50", "ack latency p99"},
		fmt.Sprintf("%.0f requests/s on %d connections, from the intended send time; endpoint paused", spec.Rate, spec.Conns))
}

// lone measures one client that waits for each answer, beside the disk alone.
func (l *lab) lone(ctx context.Context) error {
	spec := loadSpec{Conns: 1, Body: l.sizes.body, Want: http.StatusAccepted, For: l.sizes.load, Warm: l.sizes.warm}
	var value, disk [2][]float64
	for round := range l.rounds {
		l.say("lone, round %d of %d", round+1, l.rounds)
		syncs, err := syncPairs(l.dir, l.sizes.syncs)
		if err != nil {
			return err
		}
		record(&disk, syncs)
		if err := l.withPaused(ctx, func(s server) error {
			r, err := drive(ctx, s, spec)
			record(&value, r.Latency)
			return err
		}); err != nil {
			return err
		}
	}
	l.add(
		row{Name: "lone client p50", Unit: "ms", Value: over(value[0]), What: "one connection, closed loop; reference: two fdatasync of 4 KiB appended"}.beside("disk", disk[0]),
		row{Name: "lone client p99", Unit: "ms", Value: over(value[1]), What: "the same"}.beside("disk", disk[1]),
	)
	return nil
}

// latencies sends the same load to the handler that only answers and to Postern, in turns.
func (l *lab) latencies(ctx context.Context, name string, spec loadSpec, rows [2]string, what string) error {
	var value [2][2][]float64
	for round := range l.rounds {
		l.say("%s, round %d of %d", name, round+1, l.rounds)
		for i, with := range []func(context.Context, func(server) error) error{withAnswer, l.withPaused} {
			if err := with(ctx, func(s server) error {
				r, err := drive(ctx, s, spec)
				record(&value[i], r.Latency)
				return err
			}); err != nil {
				return err
			}
		}
	}
	for i, name := range rows {
		l.add(row{Name: name, Unit: "ms", Value: over(value[1][i]), What: what}.beside("202 only", value[0][i]))
		what = "the same"
	}
	return nil
}

// record notes p50 and p99 of a round, in milliseconds.
func record(into *[2][]float64, of latencies) {
	for i, d := range []time.Duration{of.P50, of.P99} {
		into[i] = append(into[i], float64(d.Microseconds())/1000)
	}
}
