package main

import (
	"context"
	"fmt"
	"os"
	"time"
)

func (l *lab) aboutIdle() string {
	return fmt.Sprintf("a fresh Postern with an empty spool and nothing to do, for %v after its first second. Memory is VmRSS, pages of the binary and of the "+
		"spool's file included; anonymous is RssAnon of that. The binary is the one that is measured.", l.sizes.idle)
}

// idle measures what a Postern that has nothing to do costs.
func (l *lab) idle(ctx context.Context) error {
	const kept = "postern"
	t, err := l.turns(ctx, contender{kept, l.idleOnce})
	if err != nil {
		return err
	}
	info, err := os.Stat(l.binary)
	if err != nil {
		return err
	}
	l.add(
		row{Name: "idle CPU", Unit: "% of one", Value: over(t.of(kept, "share"))}.atMost(0.1),
		row{Name: "idle memory", Unit: "MB", Value: over(t.of(kept, "all"))}.atMost(20),
		row{Name: "idle memory, anonymous", Unit: "MB", Value: over(t.of(kept, "anonymous"))},
		row{Name: "binary", Unit: "MB", Value: over([]float64{float64(info.Size()) / 1e6})}.atMost(20),
	)
	return nil
}

func (l *lab) idleOnce(ctx context.Context) (figures, error) {
	p, end, err := l.startPostern(ctx, nobody, setup{})
	if err != nil {
		return nil, err
	}
	defer end()
	if err := sleep(ctx, time.Second); err != nil {
		return nil, err
	}
	before, err := cpuOf(p.pid())
	if err != nil {
		return nil, err
	}
	if err := sleep(ctx, l.sizes.idle); err != nil {
		return nil, err
	}
	after, err := cpuOf(p.pid())
	if err != nil {
		return nil, err
	}
	m, err := memoryOf(p.pid())
	return figures{"share": 100 * (after - before).Seconds() / l.sizes.idle.Seconds(), "all": m.all, "anonymous": m.anonymous}, err
}
