package main

import (
	"context"
	"errors"
	"fmt"
	"net/http"
	"time"
)

func (l *lab) aboutBacklog() string {
	return fmt.Sprintf("%s events of %s bytes wait for a paused endpoint; the file is in the page cache. Ready: from exec until /readyz says 200, after SIGTERM "+
		"and after SIGKILL. Memory is RssAnon, the most that was seen. Delivery: restart, resume, and the first %s receipts out of that backlog. "+
		"Reference: as many events that waited in an otherwise empty spool.",
		number(float64(l.sizes.backlog)), number(float64(l.sizes.waiting)), number(float64(l.sizes.drain)))
}

// store is a Postern with events that wait behind a paused endpoint, and the receiver that they are for.
type store struct {
	postern  *postern
	receiver *child
	end      func()
}

// newStore starts one with n events waiting.
func (l *lab) newStore(ctx context.Context, n int64) (*store, error) {
	receiver, err := startRole(ctx, "receiver", nil)
	if err != nil {
		return nil, err
	}
	p, end, err := l.startPostern(ctx, receiver.addr, setup{})
	if err != nil {
		receiver.stop()
		return nil, err
	}
	s := &store{p, receiver, func() { end(); receiver.stop() }}
	err = p.act("pause")
	if err == nil && n > 0 {
		err = l.fill(ctx, p, n)
	}
	if err != nil {
		s.end()
		return nil, err
	}
	return s, nil
}

// fill has n more events wait, and checks that they do.
func (l *lab) fill(ctx context.Context, p *postern, n int64) error {
	before, err := p.counts()
	if err != nil {
		return err
	}
	spec := loadSpec{Addr: p.ingest, Path: sinkPath, Conns: l.sizes.conns, Body: l.sizes.waiting, Want: http.StatusAccepted, Count: n}
	if _, err := runLoad(ctx, spec); err != nil {
		return err
	}
	after, err := p.counts()
	if err == nil && after.waiting() != before.waiting()+n {
		err = fmt.Errorf("%d events wait where %d were expected", after.waiting(), before.waiting()+n)
	}
	return err
}

// backlog measures starting and delivering with many events waiting.
func (l *lab) backlog(ctx context.Context) error {
	l.say("backlog: filling with %s events", number(float64(l.sizes.backlog)))
	full, err := l.newStore(ctx, l.sizes.backlog)
	if err != nil {
		return err
	}
	defer full.end()
	empty, err := l.newStore(ctx, 0)
	if err != nil {
		return err
	}
	defer empty.end()
	if err := l.restarts(ctx, full, empty); err != nil {
		return err
	}
	return l.drains(ctx, full, empty)
}

// restarts measures the time to readiness after a stop in order and after a kill, and the memory afterwards.
func (l *lab) restarts(ctx context.Context, full, empty *store) error {
	var stopped, killed [2][]float64 // of the empty spool, of the full one
	var anonymous []float64
	for round := range l.rounds {
		l.say("backlog, restarts, round %d of %d", round+1, l.rounds)
		for i, s := range []*store{empty, full} {
			if err := s.postern.stop(); err != nil {
				return err
			}
			after, err := s.postern.start(ctx)
			if err != nil {
				return err
			}
			stopped[i] = append(stopped[i], after.Seconds())
			s.postern.kill()
			if after, err = s.postern.start(ctx); err != nil {
				return err
			}
			killed[i] = append(killed[i], after.Seconds())
		}
		peak := watchMemory(full.postern.pid())
		if err := sleep(ctx, 2*time.Second); err != nil {
			return err
		}
		anonymous = append(anonymous, peak().anonymous)
	}
	l.add(
		row{Name: "ready after SIGTERM", Unit: "s", Value: over(stopped[1])}.beside("empty spool", stopped[0]).within(2),
		row{Name: "ready after SIGKILL", Unit: "s", Value: over(killed[1])}.beside("empty spool", killed[0]).within(2),
		row{Name: "memory, ready", Unit: "MB", Value: over(anonymous)}.atMost(64),
	)
	return nil
}

// drains compares the rate of delivery out of a large backlog with that of as many events in an otherwise empty spool
// that waited in the same way.
func (l *lab) drains(ctx context.Context, full, empty *store) error {
	var rate [2][]float64
	var anonymous []float64
	for round := range l.rounds {
		l.say("backlog, delivery, round %d of %d", round+1, l.rounds)
		if err := l.fill(ctx, empty.postern, l.sizes.drain); err != nil {
			return err
		}
		for i, s := range []*store{empty, full} {
			r, m, err := l.drain(ctx, s, l.sizes.drain)
			if err != nil {
				return err
			}
			rate[i] = append(rate[i], r)
			if s == full {
				anonymous = append(anonymous, m.anonymous)
			}
		}
	}
	l.add(
		row{Name: "delivery from the backlog", Unit: "/s", Value: over(rate[1])}.beside("empty spool", rate[0]).atLeast(0.9),
		row{Name: "memory, delivering", Unit: "MB", Value: over(anonymous)}.atMost(64),
	)
	return nil
}

// drain restarts a store's Postern, lets it deliver n events, and pauses it again.
func (l *lab) drain(ctx context.Context, s *store, n int64) (rate float64, most memory, err error) {
	if err := s.postern.stop(); err != nil {
		return 0, most, err
	}
	if _, err := s.postern.start(ctx); err != nil {
		return 0, most, err
	}
	before, err := s.postern.counts()
	if err != nil {
		return 0, most, err
	}
	var got received
	if err := s.receiver.ask("reset", &got); err != nil {
		return 0, most, err
	}
	peak := watchMemory(s.postern.pid())
	err = s.postern.act("resume")
	if err == nil {
		got, err = s.receiver.await(ctx, n)
	}
	most = peak()
	err = errors.Join(err, s.postern.act("pause"))
	if err == nil {
		err = s.settle(ctx, before.waiting())
	}
	return float64(n-1) / time.Duration(got.Last-got.First).Seconds(), most, err
}

// settle waits until nothing is in flight and what the receiver got, of so many events that waited, waits no more: a
// result is on disk a little after its attempt.
func (s *store) settle(ctx context.Context, waited int64) error {
	if err := s.postern.settle(ctx); err != nil {
		return err
	}
	var got received
	if err := s.receiver.ask("count", &got); err != nil {
		return err
	}
	return s.postern.until(ctx, "record its deliveries", func(c counts) bool { return c.waiting() == waited-got.Events })
}

// sleep waits, or returns early with ctx's error.
func sleep(ctx context.Context, d time.Duration) error {
	select {
	case <-time.After(d):
		return nil
	case <-ctx.Done():
		return ctx.Err()
	}
}
