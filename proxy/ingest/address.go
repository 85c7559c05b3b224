package ingest

import (
	"net/http"
	"net/url"
	"strings"

	"postern/proxy/target"
)

// destination is where a request is to go.
type destination struct {
	endpoint Endpoint
	named    bool
	target   string // as spool.Event.Target has it
}

// howTo ends every text for a request that names no target.
const howTo = "Say where the request is to go: POST /https://partner.example/postback for a URL, /to/NAME/postback for an endpoint of the configuration, or / with the header Postern-Url: https://partner.example/postback. For plain-http targets this address can also be used as http_proxy."

// address reads the target out of the request line or the header Postern-Url. r.URL plays no part: it is decoded.
func (h *Handler) address(r *http.Request) (destination, *refusal) {
	uri := r.RequestURI
	if r.Method == http.MethodConnect {
		return destination{}, connectRefusal()
	}
	if uri != "*" && !strings.HasPrefix(uri, "/") {
		t, err := target.Parse(uri)
		if err != nil {
			return destination{}, targetRefusal("", err)
		}
		if !h.listen.has(t) {
			return h.forward(r, uri, t)
		}
		// A client whose http_proxy is Postern also sends what is meant for Postern in this form.
		if p := h.guard.CheckPage(r); p != nil {
			return destination{}, p
		}
		uri = t.PathQuery
	}
	if lines := r.Header["Postern-Url"]; lines != nil {
		return h.fromHeader(uri, lines)
	}
	if rest, ok := strings.CutPrefix(uri, "/to/"); ok {
		return h.toNamed(rest)
	}
	return h.fromPath(uri)
}

// forward is for the absolute form (RFC 9112, section 3.2.2): Postern as a forward proxy.
func (h *Handler) forward(r *http.Request, uri string, t target.Target) (destination, *refusal) {
	if r.Header["Postern-Url"] != nil {
		return destination{}, twoTargets("Postern-Url beside a forward-proxy request.")
	}
	return h.adHoc(uri, t)
}

// fromHeader is for Postern-Url. Blanks around it were never part of it.
func (h *Handler) fromHeader(uri string, lines []string) (destination, *refusal) {
	switch {
	case len(lines) > 1:
		return destination{}, headerRefusal("Postern-Url", "it is given more than once")
	case strings.HasPrefix(uri, "/?"):
		return destination{}, twoTargets("The request line has a query beside Postern-Url; put it into Postern-Url.")
	case uri != "/" && uri != "*":
		return destination{}, twoTargets("A path beside Postern-Url.")
	}
	raw := strings.Trim(lines[0], " \t")
	t, err := target.Parse(raw)
	if err != nil {
		return destination{}, targetRefusal("Postern-Url: ", err)
	}
	return h.adHoc(raw, t)
}

// fromPath is for a URL after the slash.
func (h *Handler) fromPath(uri string) (destination, *refusal) {
	raw := strings.TrimPrefix(uri, "/")
	scheme, rest, _ := strings.Cut(raw, ":/")
	if !strings.EqualFold(scheme, "http") && !strings.EqualFold(scheme, "https") {
		return destination{}, noTarget(raw)
	}
	if rest != "" && rest[0] != '/' {
		raw = scheme + "://" + rest // a client squeezed the two slashes into one
	}
	t, err := target.Parse(raw)
	if err != nil {
		return destination{}, targetRefusal("", err)
	}
	return h.adHoc(raw, t)
}

func (h *Handler) adHoc(raw string, t target.Target) (destination, *refusal) {
	if h.listen.has(t) || h.own.has(t) {
		return destination{}, loopRefusal()
	}
	ep, err := h.book.AdHoc(t)
	if err != nil {
		return destination{}, forbiddenTarget(err)
	}
	return destination{endpoint: ep, target: raw}, nil
}

// toNamed is for /to/NAME; rest is what follows /to/.
func (h *Handler) toNamed(rest string) (destination, *refusal) {
	end := strings.IndexAny(rest, "/?")
	if end < 0 {
		end = len(rest)
	}
	name, suffix := rest[:end], rest[end:]
	if strings.Contains(name, "%") {
		if decoded, err := url.PathUnescape(name); err == nil {
			name = decoded
		}
	}
	if name == "" {
		return destination{}, noTarget("to/")
	}
	ep, ok := h.book.Named(name)
	if !ok {
		return destination{}, unknownEndpoint(name)
	}
	joined, err := ep.URL.Join(suffix)
	if err != nil {
		return destination{}, targetRefusal("", err)
	}
	if h.listen.has(joined) || h.own.has(joined) {
		return destination{}, loopRefusal()
	}
	return destination{endpoint: ep, named: true, target: suffix}, nil
}
