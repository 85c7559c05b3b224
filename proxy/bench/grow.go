package main

import (
	"context"
	"fmt"
	"time"

	"postern/proxy/bench/chart"
)

// growing are the sizes at which the curves are measured: those of the table, and ten times as much.
type growing struct {
	waiting   []int64
	endpoints []int
	bodies    []int
	conns     []int
}

func (o options) growing() growing {
	if o.quick {
		return growing{waiting: []int64{5000, 20_000, 100_000}, endpoints: []int{1, 10, 100, 1000}, bodies: []int{500, 5000, 50_000}, conns: []int{1, 16, 128}}
	}
	return growing{
		waiting:   []int64{20_000, 100_000, 1_000_000, 10_000_000},
		endpoints: []int{1, 10, 100, 1000, 10_000},
		bodies:    []int{500, 5000, 50_000, 500_000},
		conns:     []int{1, 4, 16, 128, 1280},
	}
}

const accepted, delivered = "accepted", "accepted and delivered"

func (l *lab) measureGrowth(ctx context.Context) (growthData, error) {
	r := l.report
	g := growthData{Date: r.Date, Go: r.Go, System: r.System, CPUs: r.CPUs, Rounds: r.Rounds, Quick: r.Quick}
	receiver, err := startRole(ctx, "receiver", nil)
	if err != nil {
		return g, err
	}
	defer receiver.stop()
	for _, part := range []struct {
		name    string
		measure func(context.Context, *child) ([]curve, error)
	}{{"events waiting", l.growWaiting}, {"endpoints", l.growEndpoints}, {"body size", l.growBodies}, {"connections", l.growConns}} {
		l.report.Groups = append(l.report.Groups, group{Name: part.name})
		curves, err := part.measure(ctx, receiver)
		if ctx.Err() != nil {
			return g, errInterrupted
		}
		if err != nil {
			return g, fmt.Errorf("%s: %w", part.name, err)
		}
		g.Curves = append(g.Curves, curves...)
	}
	return g, nil
}

// grown is what was measured at one size.
type grown struct {
	size float64
	table
}

// grow measures contenders one size after the other.
func grow[N int | int64](ctx context.Context, l *lab, sizes []N, at func(N) []contender) (all []grown, err error) {
	for _, n := range sizes {
		l.say("%s: %s", l.group().Name, chart.Short(float64(n)))
		t, err := l.turns(ctx, at(n)...)
		if err != nil {
			return nil, err
		}
		all = append(all, grown{float64(n), t})
	}
	return all, nil
}

// lineOf is one figure of one contender over all sizes.
func lineOf(all []grown, contender, figure, name string) line {
	made := line{Name: name}
	for _, g := range all {
		made.Points = append(made.Points, point{g.size, over(g.of(contender, figure))})
	}
	return made
}

// growEndpoints spreads the same load over more and more endpoints.
func (l *lab) growEndpoints(ctx context.Context, receiver *child) ([]curve, error) {
	all, err := grow(ctx, l, l.growing().endpoints, func(n int) []contender {
		return []contender{l.through(delivered, receiver, l.overMany(n), l.burst().spreadOver(n))}
	})
	return []curve{{Title: "Events/s: endpoints", X: "named endpoints that the load is spread over",
		Lines: []line{lineOf(all, delivered, "rate", delivered)}}}, err
}

// growBytes bounds what one round sends, so that big bodies do not take an hour.
const growBytes = 200_000_000

// growBodies makes bodies bigger.
func (l *lab) growBodies(ctx context.Context, receiver *child) ([]curve, error) {
	all, err := grow(ctx, l, l.growing().bodies, func(n int) []contender {
		spec := l.burst()
		spec.Body, spec.Count = n, max(200, min(spec.Count, int64(growBytes/n)))
		return []contender{l.through(delivered, receiver, l.byPostern(setup{}), spec)}
	})
	return []curve{{Title: "Events/s: body size", X: "bytes of a body", Log: true, Lines: []line{lineOf(all, delivered, "rate", delivered)}}}, err
}

// growConns has more clients at once.
func (l *lab) growConns(ctx context.Context, receiver *child) ([]curve, error) {
	all, err := grow(ctx, l, l.growing().conns, func(n int) []contender {
		timed, counted := l.accepting(), l.burst()
		timed.Conns, counted.Conns = n, n
		room := setup{more: fmt.Sprintf("max_connections: %d\n", max(1024, n))} // 1024 is what it is without
		counted.Count = max(1000, min(counted.Count, int64(n)*1000))
		return []contender{driven(accepted, l.withPaused(room), timed), l.through(delivered, receiver, l.byPostern(room), counted)}
	})
	return []curve{{Title: "Events/s: clients", X: "connections, each of which waits for its answers",
		Lines: []line{lineOf(all, accepted, "rate", accepted), lineOf(all, delivered, "rate", delivered)}}}, err
}

// growWaiting has more and more events wait for a paused endpoint, and at each size measures accepting some more, starts,
// and delivering as many after one.
func (l *lab) growWaiting(ctx context.Context, _ *child) ([]curve, error) {
	s, err := l.newStore(ctx, 0)
	if err != nil {
		return nil, err
	}
	defer s.end()
	const killed, out = "killed", "delivered out of them"
	some := l.growing().waiting[0] / 2 // at every size as many: a restart begins slowly, and that is part of it
	all, err := grow(ctx, l, l.growing().waiting, func(n int64) []contender {
		return []contender{
			{accepted, func(ctx context.Context) (figures, error) { return l.topUp(ctx, s, n, some) }},
			{killed, func(ctx context.Context) (figures, error) {
				s.postern.kill()
				took, err := s.postern.start(ctx)
				return figures{"ready": took.Seconds()}, err
			}},
			{out, func(ctx context.Context) (figures, error) {
				if _, err := l.topUp(ctx, s, n, 0); err != nil {
					return nil, err
				}
				rate, most, err := l.drain(ctx, s, some)
				return figures{"rate": rate, "memory": most.anonymous}, err
			}},
		}
	})
	x := fmt.Sprintf("events of %d bytes that wait", l.sizes.waiting)
	return []curve{
		{Title: "Events/s: backlog", X: x, Lines: []line{lineOf(all, accepted, "rate", accepted), lineOf(all, out, "rate", out)}},
		{Title: "Seconds until ready after a kill", X: x, Log: true, Lines: []line{lineOf(all, killed, "ready", "from exec to /readyz 200")}},
		{Title: "Memory (MB)", X: x, Lines: []line{lineOf(all, out, "memory", "anonymous, at most, while delivering")}},
	}, err
}

// topUp fills a store until so many events wait, the last some of them timed.
func (l *lab) topUp(ctx context.Context, s *store, n, some int64) (figures, error) {
	c, err := s.postern.counts()
	if err != nil {
		return nil, err
	}
	if missing := n - some - c.waiting(); missing > 0 {
		if err := l.fill(ctx, s.postern, missing); err != nil {
			return nil, err
		}
	}
	if some == 0 {
		return nil, nil
	}
	began := time.Now()
	err = l.fill(ctx, s.postern, some)
	return figures{"rate": float64(some) / time.Since(began).Seconds()}, err
}
