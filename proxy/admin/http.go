package admin

import (
	"errors"
	"net/http"
	"strconv"
	"strings"
	"time"

	"postern/proxy/guard"
	"postern/proxy/problem"
)

// ServeHTTP asks the guard first, so that what a page of another site must not see is not even looked up.
func (h *Handler) ServeHTTP(w http.ResponseWriter, r *http.Request) {
	if h.parts.Page != nil && (r.URL.Path == "/" || strings.HasPrefix(r.URL.Path, pages)) {
		h.servePage(w, r)
		return
	}
	if !admitted(w, r, h.parts.Guard, h.parts.Guard.Check) {
		return
	}
	if name, ok := strings.CutPrefix(r.URL.EscapedPath(), api+"endpoints/"); ok && name != "" {
		h.serveEndpoint(w, r, name)
		return
	}
	serve(h.mux, w, r)
}

// servePage serves the page's files without a token: they hold nothing, and the page asks for the token itself. Nothing
// else can be reached by this way.
func (h *Handler) servePage(w http.ResponseWriter, r *http.Request) {
	switch {
	case !admitted(w, r, h.parts.Guard, h.parts.Guard.CheckPage):
	case r.Method != http.MethodGet && r.Method != http.MethodHead:
		problem.Write(w, methodNotAllowed("GET, HEAD").Problem)
	default:
		h.parts.Page.ServeHTTP(w, r)
	}
}

// admitted sets the headers that every answer of this listener has, and answers for the guard where it says no.
func admitted(w http.ResponseWriter, r *http.Request, g *guard.Guard, check func(*http.Request) *problem.Problem) bool {
	for name, value := range guard.Headers {
		w.Header().Set(name, value)
	}
	refused := check(r)
	if refused == nil {
		// Check lets requests in absolute form pass, for ingest's forward proxy. This listener is nobody's proxy.
		refused = g.CheckPage(r)
	}
	if refused != nil {
		problem.Write(w, *refused)
	}
	return refused == nil
}

// serve lets mux answer, and turns its own refusals into problem documents.
func serve(mux *http.ServeMux, w http.ResponseWriter, r *http.Request) {
	refusing, pattern := mux.Handler(r)
	if pattern != "" {
		mux.ServeHTTP(w, r)
		return
	}
	deaf := deafWriter{}
	refusing.ServeHTTP(deaf, r)
	if allow := deaf.Header().Get("Allow"); allow != "" {
		problem.Write(w, methodNotAllowed(allow).Problem) // shows: the methods that the mux has written there
		return
	}
	problem.Write(w, notFound("There is nothing at this path. See / for what there is.").Problem)
}

// deafWriter keeps the header of an answer and nothing else.
type deafWriter http.Header

// Header, Write and WriteHeader make it an http.ResponseWriter.
func (d deafWriter) Header() http.Header          { return http.Header(d) }
func (deafWriter) Write(text []byte) (int, error) { return len(text), nil }
func (deafWriter) WriteHeader(int)                {}

// reply is a successful answer to an API call.
type reply struct {
	status   int // zero means 200
	body     any
	location string
}

// refusal is a Problem as an error, so that a call can return it from any depth.
type refusal struct{ problem.Problem }

func (r refusal) Error() string { return r.Detail }

// call makes a handler of an API call.
func (h *Handler) call(f func(r *http.Request) (reply, error)) http.Handler {
	return http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
		r.Body = http.MaxBytesReader(w, r.Body, maxBody)
		answer, err := f(r)
		if err != nil {
			problem.Write(w, h.problem(r, err))
			return
		}
		if answer.location != "" {
			w.Header().Set("Location", answer.location)
		}
		if answer.status == 0 {
			answer.status = http.StatusOK
		}
		h.writeJSON(w, answer.status, answer.body)
	})
}

// maxBody bounds what a call reads: its bodies are a handful of filters.
const maxBody = 64 << 10

func (h *Handler) writeJSON(w http.ResponseWriter, status int, body any) {
	text, err := encodeJSON(body)
	if err != nil {
		problem.Write(w, h.internal(err))
		return
	}
	writeText(w, "application/json", status, text)
}

func writeText(w http.ResponseWriter, contentType string, status int, text []byte) {
	w.Header().Set("Content-Type", contentType)
	w.Header().Set("Content-Length", strconv.Itoa(len(text)))
	w.WriteHeader(status)
	_, _ = w.Write(text) // the client may be gone; there is nobody left to tell
}

// unhurried lifts the server's time limits from calls that touch every dead letter. The limit on reading must go too:
// when it passes while a handler runs, net/http takes the client for gone.
func unhurried(next http.Handler) http.Handler {
	return http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
		control := http.NewResponseController(w)
		// Where these are not supported there is no server, and so no limit.
		_ = errors.Join(control.SetReadDeadline(time.Time{}), control.SetWriteDeadline(time.Time{}))
		next.ServeHTTP(w, r)
	})
}
