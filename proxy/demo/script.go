package demo

import (
	"fmt"
	"hash/fnv"
	"net/http"
	"strings"
	"time"
)

// script is what happens in a demo.
type script struct {
	roles []role
	// spread is how long the application takes to post everything.
	spread time.Duration
	// dead is how long the role that comes back is away.
	dead time.Duration
	// perWindow is how many requests the throttling role takes in each window.
	perWindow int
}

// role is one receiver with its trouble, and how many postbacks it gets.
type role struct {
	name   string
	about  string
	count  int
	post   bool // POST with JSON instead of GET with a click ID
	adHoc  bool // by URL instead of by name
	answer func(visit) answer
}

// visit is one request as a role sees it.
type visit struct {
	id    string
	nth   int           // how often this event has come, from 1
	since time.Duration // since the receivers started
	burst int           // requests for this role within the present window, from 1
}

// answer is what a role does with a visit.
type answer struct {
	status     int // 0 hangs up without a word
	after      time.Duration
	retryAfter string
}

// final tells that the event needs nothing more: it was taken, or refused for good.
func (a answer) final() bool { return a.status == http.StatusOK || a.status == http.StatusUnauthorized }

// window is what the throttling role counts in.
const window = time.Second

// full and quick are the two demos. In both the throttling role gets more than it takes, and the role that comes back
// is away for long enough to open its breaker.
func full() script {
	return withRoles(script{spread: 8 * time.Second, dead: 4 * time.Second, perWindow: 6}, 1)
}

func quick() script {
	return withRoles(script{spread: 800 * time.Millisecond, dead: 900 * time.Millisecond, perWindow: 8}, 4)
}

// withRoles adds the roles; each gets its number of postbacks divided by share.
func withRoles(s script, share int) script {
	s.roles = []role{
		{name: "steady", about: "answers at once", count: 120 / share, answer: always(http.StatusOK)},
		{name: "slow", about: "takes its time", count: 40 / share, post: true, answer: slow},
		{name: "flaky", about: "fails every other event once", count: 80 / share, post: true, answer: flaky},
		{name: "throttled", about: fmt.Sprintf("takes %d a second, then says 429", s.perWindow), count: 64 / share, answer: s.throttled},
		{name: "comes-back", about: fmt.Sprintf("hangs up for the first %s", s.dead), count: 60 / share, post: true, answer: s.comesBack},
		{name: "refusing", about: "says 401, wrong credentials", count: 6, answer: always(http.StatusUnauthorized)},
		{name: "by-url", about: "not configured, reached by its URL", count: 24 / share, adHoc: true, answer: always(http.StatusOK)},
	}
	return s
}

func always(status int) func(visit) answer {
	return func(visit) answer { return answer{status: status} }
}

func (s script) comesBack(v visit) answer {
	if v.since < s.dead {
		return answer{}
	}
	return answer{status: http.StatusOK}
}

func slow(v visit) answer {
	return answer{status: http.StatusOK, after: 150*time.Millisecond + time.Duration(chance(v.id)%400)*time.Millisecond}
}

func flaky(v visit) answer {
	if v.nth == 1 && chance(v.id)%2 == 0 {
		return answer{status: http.StatusServiceUnavailable}
	}
	return answer{status: http.StatusOK}
}

func (s script) throttled(v visit) answer {
	if v.burst > s.perWindow {
		return answer{status: http.StatusTooManyRequests, retryAfter: "1"}
	}
	return answer{status: http.StatusOK}
}

// chance is a number that looks random and is the same at every attempt of one event.
func chance(id string) uint32 {
	h := fnv.New32a()
	h.Write([]byte(id))
	return h.Sum32()
}

// config is the demo's configuration file: delays so short that a person can watch them.
func (s script) config(dir, base string) string {
	var b strings.Builder
	fmt.Fprintf(&b, `# Short delays, so that a person can watch.
listen: 127.0.0.1:0
admin: { listen: 127.0.0.1:0 }
log: { level: info, format: text }
spool: { dir: %q }
targets: { allow_private: true }
defaults:
  timeout: 2s
  retry: { max_attempts: 20, base_delay: 100ms, max_delay: 1s }
  breaker: { failure_threshold: 10, cooldown: 400ms, max_cooldown: 1s }
endpoints:
`, dir+"/spool")
	for _, r := range s.roles {
		if !r.adHoc {
			fmt.Fprintf(&b, "  - { name: %s, url: %q }\n", r.name, base+"/"+r.name)
		}
	}
	return b.String()
}

// total is the number of postbacks in the script.
func (s script) total() int {
	n := 0
	for _, r := range s.roles {
		n += r.count
	}
	return n
}
