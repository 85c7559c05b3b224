package main

import (
	"context"
	"fmt"
	"time"
)

// idle measures what a Postern that has nothing to do costs.
func (l *lab) idle(ctx context.Context) error {
	var cpu, all, anonymous []float64
	for round := range l.rounds {
		l.say("idle, round %d of %d", round+1, l.rounds)
		used, m, err := l.idleOnce(ctx)
		if err != nil {
			return err
		}
		cpu, all, anonymous = append(cpu, float64(used.Milliseconds())), append(all, m.all), append(anonymous, m.anonymous)
	}
	l.add(
		row{Name: "idle CPU", Unit: "ms", Value: over(cpu), What: fmt.Sprintf("user and system time in %v, after a second; ticks of %v", l.sizes.idle, clockTick)},
		row{Name: "idle memory", Unit: "MB", Value: over(all), What: "VmRSS, pages of the binary and the spool's file included"},
		row{Name: "idle memory, anonymous", Unit: "MB", Value: over(anonymous), What: "RssAnon of that"},
	)
	return nil
}

func (l *lab) idleOnce(ctx context.Context) (used time.Duration, m memory, err error) {
	p, end, err := l.startPostern(ctx, "127.0.0.1:9")
	if err != nil {
		return 0, m, err
	}
	defer end()
	if err := sleep(ctx, time.Second); err != nil {
		return 0, m, err
	}
	before, err := cpuOf(p.pid())
	if err != nil {
		return 0, m, err
	}
	if err := sleep(ctx, l.sizes.idle); err != nil {
		return 0, m, err
	}
	after, err := cpuOf(p.pid())
	if err != nil {
		return 0, m, err
	}
	m, err = memoryOf(p.pid())
	return after - before, m, err
}
