// Package leaky shows what must not show, in every way that the test of proxy/redact is to find. A line that ends in
// "leaks" is to be found; the others are not.
package leaky

import (
	"cmp"
	"errors"
	"fmt"
	"log"
	"log/slog"
	"net/http"
	"net/url"
	"runtime/debug"
	"strings"
	"time"

	"postern/proxy/problem"
	"postern/proxy/redact"
	"postern/proxy/target"
	"postern/proxy/telemetry"
	"postern/spool"
	"postern/sync/pgstore"
)

func values(l *slog.Logger, u *url.URL, h http.Header, r *http.Request, body []byte) {
	l.Info("x", "u", u)                  // leaks
	l.Info("x", "u", *u)                 // leaks
	l.Debug("x", "h", h)                 // leaks
	l.Warn("x", slog.Any("r", r))        // leaks
	l.Error("x", "body", body)           // leaks
	l.With("h", h.Get("X-Api-Key"))      // leaks
	l.Info("x", "path", r.URL.Path)      // leaks
	l.Info("x", "line", r.RequestURI)    // leaks
	l.Info("x", "q", u.Query().Get("q")) // leaks
	l.Info("x", "text", string(body))    // leaks
	l.Info("see " + u.String())          // leaks
	l.Info("x", "u", redact.URL(u), "h", redact.Header(h), "n", len(body), "at", time.Now())
	l.Info("x", "host", u.Host, "remote", r.RemoteAddr, "method", r.Method)
	l.Error("x", "stack", string(debug.Stack()))
}

func errs(l *slog.Logger, err error) {
	l.Error("x", "error", err.Error())                  // leaks
	l.Error(fmt.Sprintf("it failed: %v", err))          // leaks
	l.Error("x", "error", strings.ToUpper(err.Error())) // leaks
	text := err.Error()
	text = strings.TrimSpace(text)
	l.Error("x", "error", text) // leaks
	l.Error("x", "error", err, "class", cmp.Or("", "dns"))
	l.Error("x", "error", redact.Error(err))
	panic("because of " + err.Error()) // leaks
}

func events(l *slog.Logger, e *spool.Event, t target.Target) {
	l.Info("x", "target", e.Target) // leaks
	l.Info("x", "event", e)         // leaks
	l.Info("x", "name", e.Headers)  // leaks
	l.Info("x", "t", t.String())    // leaks
	l.Info("x", "t", t.Path())      // leaks
	l.Info("x", "t", t.PathQuery)   // leaks
	l.Info("x", "pw", t.Password)   // leaks
	for _, field := range e.Headers {
		l.Info("x", "field", field.Value) // leaks
	}
	_, query, _ := strings.Cut(e.Target, "?")
	l.Info("x", "q", query) // leaks
	l.Info("x", "t", t, "origin", t.Origin(), "id", e.ID, "endpoint", e.Endpoint)
	l.Info("x", "q", redact.Query(query, nil))
}

func doors(w http.ResponseWriter, m *telemetry.Metrics, e *spool.Event, err error) error {
	problem.Write(w, problem.Problem{Detail: err.Error()})      // leaks
	problem.Write(w, problem.Problem{Detail: "no " + e.Target}) // leaks
	problem.Write(w, problem.Problem{Detail: redact.Error(err), Title: "x"})
	p := problem.Problem{}
	p.Detail = e.Target // leaks
	problem.Write(w, p)
	m.Rejected(err.Error()) // leaks
	m.Accepted(e.Target)    // leaks
	m.Accepted(e.Endpoint)
	_ = pgstore.Row{EndpointURL: e.Target, EventID: e.ID} // leaks
	_ = pgstore.Row{EventID: e.ID, Payload: e.Body}
	row := pgstore.Row{}
	row.DeadReason = err.Error()               // leaks
	_ = pgstore.Attempt{Error: string(e.Body)} // leaks
	attempt := spool.Attempt{Number: 1, Error: "http_500"}
	attempt.Error = err.Error() // leaks
	log.Printf("%v", err)       // leaks
	fmt.Println(e.Target)       // leaks
	if attempt.Number > 1 {
		return errors.New("bad target " + e.Target) // leaks
	}
	return fmt.Errorf("send to %s: %w", e.Target, err) // leaks
}

// refuse shows its second parameter, so that whoever calls it must watch what he gives.
func refuse(w http.ResponseWriter, what string) {
	problem.Write(w, problem.Problem{Detail: "There is " + what})
}

// address gives a part of an event away, and wrap hands on what it is given.
func address(e *spool.Event) string { return e.Target }
func wrap(s string) string          { return "<" + s + ">" }

type note struct{ text, plain string }

type noter interface{ Note(text string) }

type writer struct{ l *slog.Logger }

func (n writer) Note(text string) { n.l.Info(text) }

func detours(w http.ResponseWriter, l *slog.Logger, n noter, e *spool.Event) {
	refuse(w, e.Target) // leaks
	refuse(w, "nothing")
	l.Info("x", "a", address(e))     // leaks
	l.Info("x", "a", wrap(e.Target)) // leaks
	l.Info("x", "a", wrap("plain"))
	kept := note{text: wrap(e.Target), plain: "x"}
	l.Info("x", "a", kept.text) // leaks
	l.Info("x", "a", kept.plain)
	n.Note(e.Target) // leaks
	n.Note("plain")
	func() {
		l.Info("x", "a", wrap(address(e))) // leaks
	}()
	l.Info(e.Target) // shows: it on purpose, for this test
}
