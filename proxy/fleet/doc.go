// Package fleet answers what people ask about all instances together: how the fleet is, which endpoints are slow, what
// dead letters have in common, and whether anything should wake somebody.
//
// It promises that it only reads, that it needs no running Postern, and that times are compared by the clock of Postgres,
// so that the clock of whoever asks does not matter. It leaves out every SQL statement (that is sync/pgstore) and how
// answers look (that is proxy/cli).
package fleet

import (
	"context"
	"errors"
	"fmt"
	"strings"

	"postern/sync/pgstore"
)

// ErrUnknownEndpoint means that no instance has ever reported an endpoint of that name or URL.
var ErrUnknownEndpoint = errors.New("no instance has reported such an endpoint")

// Fleet is the central store, opened for reading.
type Fleet struct{ store *pgstore.Store }

// New reads through store, which stays the caller's to close.
func New(store *pgstore.Store) *Fleet { return &Fleet{store} }

// selection is the endpoint that was asked for, as endpoint_urls. The zero selection has all of them.
type selection struct{ urls map[string]bool }

func (f *Fleet) choose(ctx context.Context, endpoint string) (s selection, urls []string, err error) {
	if endpoint == "" {
		return s, nil, nil
	}
	endpoint, _, _ = strings.Cut(endpoint, "?") // a url out of the configuration is often pasted with its query
	if urls, err = f.store.FleetEndpoints(ctx, endpoint); err != nil {
		return s, nil, err
	}
	if len(urls) == 0 {
		return s, nil, fmt.Errorf("%w: %q; endpoints go by the name that a configuration gives them, or by their URL without its query: `postern fleet percentiles` lists them", ErrUnknownEndpoint, endpoint)
	}
	s.urls = make(map[string]bool, len(urls))
	for _, url := range urls {
		s.urls[url] = true
	}
	return s, urls, nil
}

func (s selection) has(url string) bool { return s.urls == nil || s.urls[url] }

// pick keeps the elements of the selected endpoints. It never returns nil, so that JSON has a list.
func pick[T any](s selection, list []T, url func(T) string) []T {
	out := make([]T, 0, len(list))
	for _, v := range list {
		if s.has(url(v)) {
			out = append(out, v)
		}
	}
	return out
}
