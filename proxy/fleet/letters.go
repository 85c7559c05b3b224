package fleet

import (
	"cmp"
	"context"
	"fmt"
	"net/http"
	"slices"
	"strconv"
	"strings"
	"time"

	"postern/proxy/findings"
	"postern/sync/pgstore"
)

// Letters is what the fleet's dead letters tell.
type Letters struct {
	Since     time.Time  `json:"since"`
	Until     time.Time  `json:"until"`
	Endpoints []Analysis `json:"endpoints"`
}

// Analysis is one endpoint's, the one with the most dead letters first. Endpoint is the name that instances know it by,
// EndpointURL the one by which tables do.
type Analysis struct {
	EndpointURL string `json:"endpoint_url"`
	findings.Analysis
}

// DeadLetters analyses what was given up in the last since.
func (f *Fleet) DeadLetters(ctx context.Context, endpoint string, since time.Duration) (l Letters, err error) {
	s, _, err := f.choose(ctx, endpoint)
	if err != nil {
		return l, err
	}
	now, err := f.store.FleetNow(ctx)
	if err != nil {
		return l, err
	}
	var letters []pgstore.DeadLetter
	err = f.store.FleetDeadLetters(ctx, pgstore.Letters{Since: since}, func(d pgstore.DeadLetter) bool {
		if s.has(d.EndpointURL) {
			letters = append(letters, d)
		}
		return true
	})
	if err != nil {
		return l, err
	}
	l.Since, l.Until = now.Add(-since).UTC(), now.UTC()
	if n := len(letters); n > 0 && !letters[n-1].DeadAt.Before(l.Until) {
		l.Until = letters[n-1].DeadAt.Add(time.Microsecond).UTC() // an instance's clock is ahead
	}
	a := newAnalyst(l.Since, l.Until)
	for _, d := range letters {
		a.add(d)
	}
	if a.throttled {
		if err := f.store.FleetAnswers(ctx, since, func(answers pgstore.Answers) bool { a.answer(answers); return true }); err != nil {
			return l, err
		}
	}
	l.Endpoints = a.result()
	if a.throttled {
		err = f.share(ctx, l.Endpoints)
	}
	return l, err
}

// analyst keeps one accumulator per endpoint_url, since one name may mean different URLs on different instances.
type analyst struct {
	from, until time.Time
	byURL       map[string]*pile
	throttled   bool
}

type pile struct {
	names []string
	acc   *findings.Accumulator
}

func newAnalyst(from, until time.Time) *analyst {
	return &analyst{from: from, until: until, byURL: make(map[string]*pile)}
}

func (a *analyst) add(d pgstore.DeadLetter) {
	p := a.byURL[d.EndpointURL]
	if p == nil {
		p = &pile{acc: findings.New(a.from, a.until)}
		a.byURL[d.EndpointURL] = p
	}
	if !slices.Contains(p.names, d.EndpointName) {
		p.names = append(p.names, d.EndpointName)
	}
	a.throttled = a.throttled || d.StatusCode == http.StatusTooManyRequests
	// An event that expired before any attempt has no class: its reason stands in for it.
	p.acc.Add(findings.Letter{
		Endpoint: d.EndpointName, DeadAt: d.DeadAt, StatusCode: d.StatusCode, Error: cmp.Or(d.Error, d.Reason), Attempts: d.Attempts,
	})
}

func (a *analyst) answer(x pgstore.Answers) {
	if p := a.byURL[x.EndpointURL]; p != nil {
		for _, name := range p.names {
			p.acc.Minute(name, x.At, x.Taken, x.Refused)
		}
	}
}

func (a *analyst) result() []Analysis {
	out := make([]Analysis, 0, len(a.byURL))
	for url, p := range a.byURL {
		for _, analysis := range p.acc.Result() {
			out = append(out, Analysis{url, analysis})
		}
	}
	slices.SortFunc(out, func(x, y Analysis) int {
		return cmp.Or(cmp.Compare(y.DeadCount, x.DeadCount), cmp.Compare(x.EndpointURL, y.EndpointURL), cmp.Compare(x.Endpoint, y.Endpoint))
	})
	return out
}

// share turns limits that were told by the traffic of all instances into limits for each of them: every instance keeps
// its own.
func (f *Fleet) share(ctx context.Context, list []Analysis) error {
	health, err := f.store.FleetHealth(ctx, pgstore.HealthFilter{})
	if err != nil {
		return err
	}
	senders := make(map[string]int64, len(health))
	for _, h := range health {
		senders[h.EndpointURL] = h.Instances
	}
	for i := range list {
		for j := range list[i].Findings {
			shareOut(&list[i].Findings[j], senders[list[i].EndpointURL])
		}
	}
	return nil
}

func shareOut(f *findings.Finding, senders int64) {
	number, unit, found := strings.Cut(f.SuggestedLimit, "/")
	n, err := strconv.ParseInt(number, 10, 64)
	if senders < 2 || !found || err != nil {
		return
	}
	f.SuggestedLimit = fmt.Sprintf("%d/%s", max(1, n/senders), unit)
	f.Action += fmt.Sprintf(" These are the numbers of all %d instances together: give each of them %q, and that part of the rate.", senders, f.SuggestedLimit)
}
