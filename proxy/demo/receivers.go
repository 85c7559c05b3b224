package demo

import (
	"fmt"
	"io"
	"net"
	"net/http"
	"strings"
	"sync"
	"time"
)

// receivers are all roles behind one listener on loopback, told apart by the first segment of the path.
type receivers struct {
	base    string
	server  *http.Server
	roles   map[string]role
	started time.Time

	mu     sync.Mutex
	tally  map[string]*tally // by role
	visits map[string]int    // by event ID
	final  map[string]int    // by event ID: the status that ended it
}

// tally is what one role has seen.
type tally struct {
	requests, taken int
	windowStart     time.Time
	inWindow        int
}

func startReceivers(s script) (*receivers, error) {
	listener, err := net.Listen("tcp", "127.0.0.1:0")
	if err != nil {
		return nil, fmt.Errorf("starting the demo's receivers: %w", err)
	}
	r := &receivers{
		base:  "http://" + listener.Addr().String(),
		roles: make(map[string]role), tally: make(map[string]*tally),
		visits: make(map[string]int), final: make(map[string]int), started: time.Now(),
	}
	for _, role := range s.roles {
		r.roles[role.name], r.tally[role.name] = role, &tally{}
	}
	r.server = &http.Server{Handler: r, ReadHeaderTimeout: 5 * time.Second}
	go r.server.Serve(listener)
	return r, nil
}

func (r *receivers) close() { r.server.Close() }

// ServeHTTP lets the role that the path names answer.
func (r *receivers) ServeHTTP(w http.ResponseWriter, req *http.Request) {
	name, _, _ := strings.Cut(strings.TrimPrefix(req.URL.Path, "/"), "/")
	role, ok := r.roles[name]
	if !ok {
		http.NotFound(w, req)
		return
	}
	io.Copy(io.Discard, req.Body)
	a := role.answer(r.visit(name, req.Header.Get("Postern-Event-Id")))
	if a.status == 0 {
		panic(http.ErrAbortHandler) // net/http's way to hang up
	}
	if a.after > 0 {
		select {
		case <-time.After(a.after):
		case <-req.Context().Done():
			return
		}
	}
	if a.retryAfter != "" {
		w.Header().Set("Retry-After", a.retryAfter)
	}
	r.answered(name, req.Header.Get("Postern-Event-Id"), a)
	w.WriteHeader(a.status)
}

func (r *receivers) visit(name, id string) visit {
	r.mu.Lock()
	defer r.mu.Unlock()
	now, t := time.Now(), r.tally[name]
	t.requests++
	if now.Sub(t.windowStart) >= window {
		t.windowStart, t.inWindow = now, 0
	}
	t.inWindow++
	r.visits[id]++
	return visit{id: id, nth: r.visits[id], since: now.Sub(r.started), burst: t.inWindow}
}

func (r *receivers) answered(name, id string, a answer) {
	if !a.final() {
		return
	}
	r.mu.Lock()
	defer r.mu.Unlock()
	if a.status == http.StatusOK && r.final[id] == 0 {
		r.tally[name].taken++
	}
	r.final[id] = a.status
}

// counts returns how many requests a role has seen, and how many events it has taken.
func (r *receivers) counts(name string) (requests, taken int) {
	r.mu.Lock()
	defer r.mu.Unlock()
	return r.tally[name].requests, r.tally[name].taken
}

// sum is counts over all roles.
func (r *receivers) sum() (requests, taken int) {
	r.mu.Lock()
	defer r.mu.Unlock()
	for _, t := range r.tally {
		requests, taken = requests+t.requests, taken+t.taken
	}
	return requests, taken
}

// unseen returns those of ids that no receiver has taken or refused.
func (r *receivers) unseen(ids []string) []string {
	r.mu.Lock()
	defer r.mu.Unlock()
	missing := []string{}
	for _, id := range ids {
		if r.final[id] == 0 {
			missing = append(missing, id)
		}
	}
	return missing
}
