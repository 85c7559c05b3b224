package demo

import (
	"context"
	"fmt"
	"sync"
	"time"

	"postern/proxy/client"
)

// post plays the application: it hands over every postback of the script, spread over the script's time.
func (s *show) post(ctx context.Context) {
	type job struct {
		role role
		n    int
	}
	var jobs []job
	for n := range s.script.longest() {
		for _, r := range s.script.roles {
			if n < r.count {
				jobs = append(jobs, job{r, n})
			}
		}
	}
	queue := make(chan job)
	var workers sync.WaitGroup
	for range senders {
		workers.Go(func() {
			for j := range queue {
				s.hand(ctx, j.role, j.n)
			}
		})
	}
	defer workers.Wait()
	defer close(queue)
	pace := time.NewTicker(s.script.spread / time.Duration(len(jobs)))
	defer pace.Stop()
	for _, j := range jobs {
		select {
		case <-pace.C:
			queue <- j
		case <-ctx.Done():
			return
		}
	}
}

// hand gives one postback to Postern and keeps the ID it got.
func (s *show) hand(ctx context.Context, r role, n int) {
	answer, err := s.running.ingest.Send(ctx, s.message(r, n))
	s.mu.Lock()
	defer s.mu.Unlock()
	if err != nil {
		s.refused = append(s.refused, err)
		return
	}
	s.accepted[r.name] = append(s.accepted[r.name], answer.Accepted.ID)
}

// message is a postback as trackers and shops send them.
func (s *show) message(r role, n int) client.Message {
	m := client.Message{Method: "GET", To: r.name, Suffix: fmt.Sprintf("?cid=clk_%06d&payout=%d.50", n, n%7)}
	if r.adHoc {
		m.To, m.Suffix, m.URL = "", "", s.receivers.base+"/"+r.name+m.Suffix
	}
	if r.post {
		m.Method, m.Suffix = "POST", ""
		m.Headers = []client.Header{{Name: "Content-Type", Value: "application/json"}}
		m.Body = fmt.Appendf(nil, `{"type":"order.paid","order":"ord_%06d","amount":%d}`, n, 100+n)
	}
	return m
}

// longest is the largest number of postbacks that a role gets.
func (s script) longest() int {
	n := 0
	for _, r := range s.roles {
		n = max(n, r.count)
	}
	return n
}
