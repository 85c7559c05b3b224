package torture

import (
	"sync"
	"time"
)

// lateness knows when this process itself was late, since the machine was busy: what a partner then reads late seems to
// have come closer to what follows than it did.
type lateness struct {
	mu    sync.Mutex // guards spots
	spots []spot
	end   chan struct{}
	ended sync.WaitGroup
}

type spot struct {
	at time.Time
	by time.Duration
}

// lateStep is how often it looks, and lateLeast what it takes for punctual.
const lateStep, lateLeast = 2 * time.Millisecond, 4 * time.Millisecond

func watchLateness() *lateness {
	l := &lateness{end: make(chan struct{})}
	l.ended.Go(func() {
		tick := time.NewTicker(lateStep)
		defer tick.Stop()
		last := time.Now()
		for {
			select {
			case <-l.end:
				return
			case <-tick.C:
			}
			now := time.Now()
			if by := now.Sub(last) - lateStep; by > lateLeast {
				l.note(spot{now, by})
			}
			last = now
		}
	})
	return l
}

func (l *lateness) note(s spot) {
	l.mu.Lock()
	defer l.mu.Unlock()
	if l.spots = append(l.spots, s); len(l.spots) > 20_000 {
		l.spots = append([]spot(nil), l.spots[10_000:]...)
	}
}

// around is how late this process may have been at that time.
func (l *lateness) around(at time.Time) (most time.Duration) {
	l.mu.Lock()
	defer l.mu.Unlock()
	for _, s := range l.spots {
		if gap := s.at.Sub(at).Abs(); gap < s.by+50*time.Millisecond {
			most = max(most, s.by)
		}
	}
	return most + lateLeast
}

func (l *lateness) stop() {
	close(l.end)
	l.ended.Wait()
}
