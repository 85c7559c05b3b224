package configs

import (
	"cmp"
	"slices"
	"strings"

	"postern/proxy/target"
)

// Endpoint returns the named endpoint.
func (c *Config) Endpoint(name string) (*Endpoint, bool) {
	i, ok := c.lookup.names[name]
	if !ok {
		return nil, false
	}
	return &c.Endpoints[i], true
}

// Match returns the named endpoint whose policy governs an ad hoc target: the one with the longest match prefix.
func (c *Config) Match(t target.Target) (*Endpoint, bool) {
	for _, p := range c.lookup.prefixes[t.Origin()] {
		if t.Under(p.target) {
			return &c.Endpoints[p.endpoint], true
		}
	}
	return nil, false
}

func (c *Config) buildLookup() {
	c.lookup = lookup{names: make(map[string]int), prefixes: make(map[string][]prefix)}
	for i := range c.Endpoints {
		e := &c.Endpoints[i]
		c.lookup.names[e.Name] = i
		for _, m := range e.Match {
			c.lookup.prefixes[m.Origin()] = append(c.lookup.prefixes[m.Origin()], prefix{m, i})
		}
	}
	for _, list := range c.lookup.prefixes {
		slices.SortStableFunc(list, func(a, b prefix) int {
			return cmp.Compare(len(matchPath(b.target)), len(matchPath(a.target)))
		})
	}
}

// matchPath is what distinguishes two prefixes of one origin: a closing slash says nothing more.
func matchPath(t target.Target) string { return strings.TrimSuffix(t.Path(), "/") }
