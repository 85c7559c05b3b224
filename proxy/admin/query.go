package admin

import (
	"net/http"
	"net/url"
	"slices"
	"strconv"
	"strings"
	"time"

	"postern/spool"
)

// Bounds of lists and of the analysis.
const (
	defaultLimit = 100
	maxLimit     = 1000
	defaultHours = 24
	maxHours     = 10 * 366 * 24 // longer than any retention
)

// values are the parameters of a request's query, each at most once.
type values map[string]string

// parameters reads the query strictly: a misspelt filter that is passed over would show, or purge, everything.
func parameters(r *http.Request, allowed ...string) (values, error) {
	parsed, err := url.ParseQuery(r.URL.RawQuery)
	if err != nil {
		return nil, badRequest("The query cannot be read. Percent-encode %%, & and ; in its values.")
	}
	out := make(values, len(parsed))
	for name, list := range parsed {
		switch {
		case !slices.Contains(allowed, name) && len(allowed) == 0:
			return nil, badRequest("This call takes no query parameters.")
		case !slices.Contains(allowed, name):
			return nil, badRequest("The query has a parameter that this call does not take. It takes %s.", strings.Join(allowed, ", "))
		case len(list) > 1:
			return nil, badRequest("%s: given %d times; give it once.", name, len(list))
		}
		out[name] = list[0]
	}
	return out, nil
}

func (v values) boolean(name string) (bool, error) {
	switch v[name] {
	case "1", "true":
		return true, nil
	case "0", "false":
		return false, nil
	}
	if v[name] != "" {
		return false, badRequest("%s: must be 1 or 0.", name)
	}
	return false, nil
}

// number reads a whole number from 1 to most; fallback is for a parameter that is empty or not there.
func (v values) number(name string, fallback, most int) (int, error) {
	given := v[name]
	if given == "" {
		return fallback, nil
	}
	n, err := strconv.Atoi(given)
	if err != nil || n < 1 || n > most {
		return 0, badRequest("%s: must be a whole number from 1 to %d.", name, most)
	}
	return n, nil
}

// paging adds limit and cursor to a query.
func (v values) paging(q *spool.Query) error {
	q.Limit, q.Cursor = defaultLimit, v["cursor"]
	if given := v["limit"]; given != "" {
		n, err := strconv.Atoi(given)
		if err != nil || n < 1 {
			return badRequest("limit: must be a whole number of 1 or more; a page has at most %d, and next_cursor leads to the next.", maxLimit)
		}
		q.Limit = min(n, maxLimit)
	}
	return nil
}

func eventQuery(r *http.Request) (q spool.Query, err error) {
	params, err := parameters(r, "state", "endpoint", "limit", "cursor")
	if err != nil {
		return q, err
	}
	q.Endpoint = origin(params["endpoint"])
	if word := params["state"]; word != "" {
		var ok bool
		if q.State, ok = spool.ParseState(word); !ok {
			return q, badRequest("state: must be one of pending, in_flight, failed, delivered, dead_letter.")
		}
	}
	return q, params.paging(&q)
}

func letterQuery(r *http.Request, now time.Time) (q spool.Query, err error) {
	params, err := parameters(r, "endpoint", "status", "error", "since", "until", "limit", "cursor")
	if err != nil {
		return q, err
	}
	f := filter{Endpoint: params["endpoint"], Error: params["error"], Since: params["since"], Until: params["until"]}
	if text := params["status"]; text != "" {
		if f.Status, err = strconv.Atoi(text); err != nil || f.Status == 0 {
			return q, badStatus
		}
	}
	if q, err = f.query(now); err != nil {
		return q, err
	}
	return q, params.paging(&q)
}
