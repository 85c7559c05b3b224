package admin

import (
	"cmp"
	"context"
	"net/http"
	"net/url"
	"slices"
	"strings"

	"postern/proxy/problem"
	"postern/proxy/target"
)

func (h *Handler) listEndpoints(r *http.Request) (reply, error) {
	if _, err := parameters(r); err != nil {
		return reply{}, err
	}
	return reply{body: h.endpointsNow()}, nil
}

// endpointList is GET endpoints.
type endpointList struct {
	Endpoints []endpointJSON `json:"endpoints"`
}

func (h *Handler) endpointsNow() endpointList {
	views := h.parts.Endpoints.List()
	slices.SortFunc(views, func(a, b EndpointView) int { return cmp.Compare(a.Name, b.Name) })
	out := make([]endpointJSON, 0, len(views))
	for _, view := range views {
		out = append(out, view.json())
	}
	return endpointList{out}
}

// serveEndpoint answers for one endpoint. ServeMux cannot: the name of an ad hoc endpoint is an origin, and ServeMux
// redirects a path with // to one without. So both spellings work here, https%3A%2F%2Fpartner.example and
// https://partner.example, also where something on the way squeezed the slashes.
func (h *Handler) serveEndpoint(w http.ResponseWriter, r *http.Request, escaped string) {
	action := h.action(&escaped)
	look := h.endpoint
	if rest, ok := strings.CutSuffix(escaped, "/latency"); ok && action == nil {
		look, escaped = h.lookAtLatency, rest
	}
	name, err := url.PathUnescape(escaped) // shows: only the name of an endpoint that was found, see endpoint
	switch {
	case err != nil || name == "":
		problem.Write(w, notFound("There is nothing at this path. See / for what there is.").Problem)
	case action == nil && r.Method != http.MethodGet && r.Method != http.MethodHead:
		problem.Write(w, methodNotAllowed("GET, HEAD").Problem)
	case action != nil && r.Method != http.MethodPost:
		problem.Write(w, methodNotAllowed("POST").Problem)
	default:
		h.call(func(r *http.Request) (reply, error) { return look(r, origin(name), action) }).ServeHTTP(w, r)
	}
}

// control is something to be done to an endpoint, and the word for it.
type control struct {
	done string
	do   func(ctx context.Context, name string) error
}

// action cuts the name of an action from the end of a path; nil means that there is none.
func (h *Handler) action(path *string) *control {
	name, word := *path, ""
	if slash := strings.LastIndexByte(name, '/'); slash >= 0 {
		name, word = name[:slash], name[slash+1:]
	}
	var c *control
	switch word {
	case "pause":
		c = &control{"paused", h.parts.Endpoints.Pause}
	case "resume":
		c = &control{"resumed", h.parts.Endpoints.Resume}
	case "reset":
		c = &control{"reset", h.parts.Endpoints.Reset}
	default:
		return nil
	}
	*path = name
	return c
}

// origin brings the name of an ad hoc endpoint into its shortest form, and leaves any other name as it is.
func origin(name string) string {
	scheme, rest, ok := strings.Cut(name, ":/")
	if !ok {
		return name
	}
	if t, err := target.Parse(scheme + "://" + strings.TrimPrefix(rest, "/")); err == nil && t.PathQuery == "/" {
		return t.Origin()
	}
	return name
}

func (h *Handler) endpoint(r *http.Request, name string, action *control) (reply, error) {
	if _, err := parameters(r); err != nil {
		return reply{}, err
	}
	view, ok := h.parts.Endpoints.Get(name)
	if !ok {
		return reply{}, noEndpoint
	}
	if action != nil {
		if err := action.do(r.Context(), name); err != nil {
			return reply{}, err
		}
		h.parts.Logger.Info("an endpoint was "+action.done+" by hand", "endpoint", view.Name, "remote", r.RemoteAddr)
	}
	if view, ok = h.parts.Endpoints.Get(name); !ok { // an idle ad hoc endpoint may be forgotten in between
		return reply{}, noEndpoint
	}
	return reply{body: view.json()}, nil
}

var noEndpoint = refusal{problem.Problem{Status: 404, Slug: "no-such-endpoint", Title: "No such endpoint", Detail: "There is no such endpoint. GET " + api + "endpoints lists those that are configured or have events; the name of an ad hoc one is its origin, URL-encoded."}}
