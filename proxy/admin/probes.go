package admin

import (
	"encoding/json"
	"net/http"

	"postern/proxy/guard"
)

// NewProbes makes the handler of probes.listen: /healthz, /readyz and /metrics alone. ready may be nil.
func NewProbes(g *guard.Guard, ready func() []string, m Metrics) http.Handler {
	mux := http.NewServeMux()
	probes(mux, ready, m)
	return http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
		if admitted(w, r, g, g.Check) {
			serve(mux, w, r)
		}
	})
}

// probes adds what both listeners have.
func probes(mux *http.ServeMux, ready func() []string, m Metrics) {
	mux.HandleFunc("GET /healthz", func(w http.ResponseWriter, _ *http.Request) {
		// That this is answered is the answer: a spool that cannot be written is a matter for /readyz, since
		// restarting the process would not mend the disk.
		writeText(w, "text/plain; charset=utf-8", http.StatusOK, []byte("ok\n"))
	})
	mux.HandleFunc("GET /readyz", func(w http.ResponseWriter, _ *http.Request) { writeReady(w, ready) })
	mux.HandleFunc("GET /metrics", func(w http.ResponseWriter, _ *http.Request) { writeMetrics(w, m) })
}

// writeReady answers 200, or 503 with the reasons.
func writeReady(w http.ResponseWriter, ready func() []string) {
	reasons, status := whyNot(ready), http.StatusOK
	if len(reasons) > 0 {
		status = http.StatusServiceUnavailable
	}
	state := struct {
		Ready   bool     `json:"ready"`
		Reasons []string `json:"reasons"`
	}{len(reasons) == 0, reasons}
	text, err := json.Marshal(state)
	if err != nil { // strings and a bool can always be encoded
		panic(err)
	}
	writeText(w, "application/json", status, append(text, '\n'))
}

// whyNot is what ready says, never nil: JSON shows a list. ready may be nil.
func whyNot(ready func() []string) []string {
	reasons := []string{}
	if ready != nil {
		reasons = append(reasons, ready()...)
	}
	return reasons
}

// writeMetrics writes the page in the text format that every Prometheus reads, piece by piece: with many thousands of
// endpoints it has tens of megabytes.
func writeMetrics(w http.ResponseWriter, m Metrics) {
	w.Header().Set("Content-Type", "text/plain; version=0.0.4; charset=utf-8")
	if err := m.WritePrometheus(w); err != nil {
		panic(http.ErrAbortHandler) // a page that breaks off must not pass for a whole one
	}
}
