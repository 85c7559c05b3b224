// Package web serves the page of a fleet and the JSON that it shows, for `postern fleet serve`.
//
// It promises what the admin listener does: a page of another site can neither read nor ask (package guard is asked
// before anything else), nothing is kept or framed, and only GET is understood: the fleet is looked at here and changed
// nowhere. Each question to Postgres is asked once for everybody who wants to know at the same time, and its answer is
// used again for a few seconds, so that many viewers cost no more than one. It leaves out what the answers are: package
// fleet.
package web

import (
	"context"
	"log/slog"
	"net/http"
	"strings"

	"postern/proxy/guard"
	"postern/proxy/problem"
	"postern/proxy/redact"
	"postern/proxy/ui"
)

// Config is what a Handler needs.
type Config struct {
	Guard   *guard.Guard
	Logger  *slog.Logger
	Answers []Answer
}

// Handler serves / and all below /ui/ without a token, which the page asks for itself, and the answers below
// /api/v1/fleet/, each by its name.
type Handler struct {
	guard   *guard.Guard
	logger  *slog.Logger
	page    http.Handler
	answers map[string]*kept
	cancel  context.CancelFunc
}

// api is where the JSON is.
const api = "/api/v1/fleet/"

// New makes the handler. Close ends the questions that it is asking.
func New(cfg Config) *Handler {
	ctx, cancel := context.WithCancel(context.Background())
	h := &Handler{guard: cfg.Guard, logger: cfg.Logger, page: ui.Fleet(), answers: map[string]*kept{}, cancel: cancel}
	for _, a := range cfg.Answers {
		h.answers[a.Name] = &kept{Answer: a, ctx: ctx}
	}
	return h
}

// Close ends questions under way; who waits for their answers is told that they failed.
func (h *Handler) Close() { h.cancel() }

// ServeHTTP asks the guard first.
func (h *Handler) ServeHTTP(w http.ResponseWriter, r *http.Request) {
	for name, value := range guard.Headers {
		w.Header().Set(name, value)
	}
	isPage := r.URL.Path == "/" || strings.HasPrefix(r.URL.Path, "/ui/")
	refused := h.guard.CheckPage(r)
	if refused == nil && !isPage {
		refused = h.guard.Check(r)
	}
	answer, known := h.answers[strings.TrimPrefix(r.URL.Path, api)]
	switch {
	case refused != nil:
		problem.Write(w, *refused)
	case r.Method != http.MethodGet && r.Method != http.MethodHead:
		problem.Write(w, problem.Problem{Status: http.StatusMethodNotAllowed, Slug: "method-not-allowed", Title: "Method not allowed",
			Detail: "The fleet is only looked at here: GET, HEAD.", Header: http.Header{"Allow": {"GET, HEAD"}}})
	case isPage:
		h.page.ServeHTTP(w, r)
	case !known || !strings.HasPrefix(r.URL.Path, api):
		problem.Write(w, problem.Problem{Status: http.StatusNotFound, Slug: "not-found", Title: "Not found", Detail: "There is nothing at this path. See / for what there is."})
	default:
		h.write(w, r, answer)
	}
}

func (h *Handler) write(w http.ResponseWriter, r *http.Request, k *kept) {
	text, err := k.get(r.Context())
	if err != nil {
		h.logger.Warn("the fleet's Postgres could not be asked", "about", k.Name, "error", err)
		problem.Write(w, problem.Problem{Status: http.StatusServiceUnavailable, Slug: "no-answer", Title: "Postgres does not answer",
			Detail: redact.Error(err), RetryAfter: failedFresh})
		return
	}
	w.Header().Set("Content-Type", "application/json")
	_, _ = w.Write(text) // the client may be gone; there is nobody left to tell
}
