package admin

import (
	"net/http"
	"net/http/pprof"
	"runtime"
	"strconv"
	"sync"
	"time"

	"postern/proxy/problem"
)

// profilesAt is where `go tool pprof` looks.
const profilesAt = "/debug/pprof/"

// profiles adds what `go tool pprof` and `go tool trace` read. They hold addresses of code and counts, no data of an
// event; cmdline is left out all the same, since a flag may hold a secret. The standard library also puts them on
// http.DefaultServeMux, which no listener of ours serves.
func (h *Handler) profiles() {
	at := func(name string, next http.HandlerFunc) {
		h.mux.Handle("GET "+profilesAt+name, unhurried(h.whereProfiled(next)))
	}
	at("{$}", pprof.Index)
	at("profile", pprof.Profile)
	at("trace", pprof.Trace)
	for _, name := range []string{"allocs", "goroutine", "heap", "threadcreate"} {
		at(name, pprof.Handler(name).ServeHTTP)
	}
	at("mutex", whileSampling(pprof.Handler("mutex"), func(on bool) { runtime.SetMutexProfileFraction(choose(on, mutexFraction)) }))
	at("block", whileSampling(pprof.Handler("block"), func(on bool) { runtime.SetBlockProfileRate(choose(on, blockRate)) }))
}

// How much is sampled of lock contention and of waiting: enough for a picture in seconds, little enough to not change it.
const (
	mutexFraction = 10                         // one event of so many
	blockRate     = int(50 * time.Microsecond) // one sample per so many nanoseconds spent waiting
)

func choose(on bool, rate int) int {
	if on {
		return rate
	}
	return 0
}

// whereProfiled answers 404 while the configuration does not ask for profiles: they tell how the program works inside,
// and taking one costs time.
func (h *Handler) whereProfiled(next http.Handler) http.Handler {
	return http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
		if h.parts.Profiles == nil || !h.parts.Profiles() {
			problem.Write(w, notFound("Profiles are off. Set admin.pprof to true and reload, or start with --pprof.").Problem)
			return
		}
		next.ServeHTTP(w, r)
	})
}

// whileSampling is for profiles that the runtime gathers only when told to, at a cost for the whole program: it is told
// for as long as somebody waits for one. Without seconds there would be nothing in it.
func whileSampling(next http.Handler, sample func(on bool)) http.HandlerFunc {
	var one sync.Mutex // held while one is gathered: a second must not end the first one's
	return func(w http.ResponseWriter, r *http.Request) {
		if n, err := strconv.Atoi(r.FormValue("seconds")); err != nil || n < 1 {
			problem.Write(w, badRequest("seconds: say for how long to sample, such as ?seconds=10.").Problem)
			return
		}
		if !one.TryLock() {
			problem.Write(w, problem.Problem{Status: 409, Slug: "profile-running", Title: "A profile is being taken", RetryAfter: time.Second,
				Detail: "Another caller is taking this profile. Ask again when it has ended."})
			return
		}
		defer one.Unlock()
		sample(true)
		defer sample(false)
		next.ServeHTTP(w, r)
	}
}
