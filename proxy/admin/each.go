package admin

import (
	"context"
	"errors"
	"sync"

	"postern/spool"
)

// together is how many changes are asked for at once. The spool gathers what waits into one commit, so that together
// they take little longer than one.
const together = 64

// each acts on every ID, several at a time, and counts. The first error that is not about a single event ends it; act
// passes over what is no dead letter any more.
func each(ctx context.Context, ids []string, act func(context.Context, string) error) (done int, err error) {
	ctx, stop := context.WithCancelCause(ctx)
	defer stop(nil)
	var mu sync.Mutex // guards done
	var wg sync.WaitGroup
	queue := make(chan string)
	for range min(together, len(ids)) {
		wg.Go(func() {
			for id := range queue {
				switch err := act(ctx, id); {
				case err == nil:
					mu.Lock()
					done++
					mu.Unlock()
				case !aboutOne(err):
					stop(err)
				}
			}
		})
	}
feed:
	for _, id := range ids {
		select {
		case queue <- id:
		case <-ctx.Done():
			break feed
		}
	}
	close(queue)
	wg.Wait()
	return done, context.Cause(ctx)
}

// aboutOne tells an error that concerns one event and not its neighbours.
func aboutOne(err error) bool {
	return errors.Is(err, spool.ErrNotDead) || errors.Is(err, spool.ErrNotFound) || errors.Is(err, spool.ErrBusy)
}
