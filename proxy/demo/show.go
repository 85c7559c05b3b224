package demo

import (
	"context"
	"fmt"
	"sync"
	"time"

	"postern/proxy/cli/term"
	"postern/proxy/client"
)

// frame is how often the picture is redrawn, and every tenth one is a line where there is no terminal.
const frame = 100 * time.Millisecond

// senders is how many connections the demo's application posts on.
const senders = 8

// show is one demo under way.
type show struct {
	out       *term.Writer
	script    script
	receivers *receivers
	running   *running
	started   time.Time
	result    func(Summary) error // nil: the summary is shown

	mu       sync.Mutex
	accepted map[string][]string // event IDs by role
	refused  []error
}

// play posts everything, shows what becomes of it, and sums up.
func (s *show) play(ctx context.Context) error {
	fmt.Fprintf(s.out, "%s from an application to %d receivers, through Postern.\n\n", term.Count(int64(s.script.total()), "postback"), len(s.script.roles))
	s.accepted = make(map[string][]string)
	posted := make(chan struct{})
	go func() {
		defer close(posted)
		s.post(ctx)
	}()
	err := s.watch(ctx, posted)
	<-posted // nobody writes to s after this
	if err != nil {
		return err
	}
	return s.summary(ctx)
}

// watch draws until everything was posted and nothing waits any more.
func (s *show) watch(ctx context.Context, posted <-chan struct{}) error {
	live := term.NewLive(s.out)
	tick := time.NewTicker(frame)
	defer tick.Stop()
	for n := 0; ; n++ {
		status, err := s.running.admin.Status(ctx)
		if err != nil {
			return err
		}
		over := isClosed(posted) && status.Value.Pending+status.Value.AwaitingRetry+status.Value.InFlight == 0
		if err := s.draw(ctx, live, status.Value, over || n%10 == 0); err != nil || over {
			return err
		}
		select {
		case <-ctx.Done():
			return fmt.Errorf("the demo did not end in time: %w", ctx.Err())
		case <-tick.C:
		}
	}
}

func isClosed(c <-chan struct{}) bool {
	select {
	case <-c:
		return true
	default:
		return false
	}
}

// draw redraws the table on a terminal and writes a line elsewhere, if one is due.
func (s *show) draw(ctx context.Context, live *term.Live, status client.Status, line bool) error {
	if !s.out.TTY {
		if line {
			s.line(status)
		}
		return nil
	}
	endpoints, err := s.running.admin.Endpoints(ctx)
	if err != nil {
		return err
	}
	table := s.table(endpoints.Value.Endpoints)
	return live.Draw(func(w *term.Writer) error { return table.Write(w) })
}

// line is the picture where nothing can be redrawn.
func (s *show) line(status client.Status) {
	requests, taken := s.receivers.sum()
	fmt.Fprintf(s.out, "%4.1fs  accepted %3d  delivered %3d  waiting %3d  dead letters %d  requests seen %d\n", time.Since(s.started).Seconds(),
		len(s.ids()), taken, status.Pending+status.AwaitingRetry+status.InFlight, status.DeadLetter, requests)
}

// table is the picture on a terminal.
func (s *show) table(endpoints []client.Endpoint) *term.Table {
	table := term.NewTable(term.Column{Title: "RECEIVER"}, term.Column{Title: "WHAT IT DOES", Cut: true, Extra: true},
		term.Column{Title: "ACCEPTED", Right: true}, term.Column{Title: "DELIVERED", Right: true}, term.Column{Title: "REQUESTS", Right: true},
		term.Column{Title: "WAITING", Right: true}, term.Column{Title: "DEAD", Right: true}, term.Column{Title: "BREAKER"})
	known := make(map[string]client.Endpoint)
	for _, e := range endpoints {
		known[e.Name] = e
	}
	for _, r := range s.script.roles {
		e := known[s.endpoint(r)]
		requests, taken := s.receivers.counts(r.name)
		breaker := term.Cell{Text: e.Breaker.State, Color: term.Good}
		if e.Breaker.State != "closed" {
			breaker.Color = term.Bad
		}
		table.Row(term.Cell{Text: r.name}, term.Cell{Text: r.about, Color: term.Faint}, number(s.count(r.name)), number(taken), number(requests),
			number(int(e.Queue.Pending+e.Queue.AwaitingRetry)), number(int(e.Queue.DeadLetter)), breaker)
	}
	return table
}

func number(n int) term.Cell { return term.Cell{Text: fmt.Sprint(n)} }

// endpoint is the name that Postern has for a role.
func (s *show) endpoint(r role) string {
	if r.adHoc {
		return s.receivers.base
	}
	return r.name
}

func (s *show) count(role string) int {
	s.mu.Lock()
	defer s.mu.Unlock()
	return len(s.accepted[role])
}

// ids are all accepted events.
func (s *show) ids() []string {
	s.mu.Lock()
	defer s.mu.Unlock()
	var all []string
	for _, ids := range s.accepted {
		all = append(all, ids...)
	}
	return all
}
