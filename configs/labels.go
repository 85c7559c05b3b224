package configs

import (
	"maps"
	"slices"

	"github.com/goccy/go-yaml/ast"
)

// labelSet is sync.labels.
type labelSet struct{ p *map[string]string }

func (l labelSet) nullable() {}

func (l labelSet) read(r *reader, n ast.Node, path string) {
	pairs, ok := r.pairs(n, path)
	if !ok {
		r.add(n, path, "a mapping of labels is wanted here, such as { service: checkout, region: eu }")
		return
	}
	labels := make(map[string]string, len(pairs))
	for _, p := range pairs {
		at := joinPath(path, p.name)
		if !isName(p.name) {
			r.add(p.key, at, "not a label; use 1 to 64 of A-Z, a-z, 0-9, '.', '_' and '-'")
			continue
		}
		value, ok := r.text(p.value, at)
		if !ok {
			continue
		}
		if why := refusedValue(value); why != "" || len(value) > maxLabelBytes {
			r.add(p.value, at, "a label's value has 1 to %d bytes, without control characters or blanks at its ends", maxLabelBytes)
			continue
		}
		labels[p.name] = value
	}
	*l.p = labels
}

const maxLabelBytes = 256 // each is copied to every heartbeat

func (l labelSet) show() any {
	m := mapping{}
	for _, name := range sortedKeys(*l.p) {
		m = append(m, item{name, (*l.p)[name]})
	}
	return m
}

func (l labelSet) raw() any {
	all := make([]Header, 0, len(*l.p))
	for _, name := range sortedKeys(*l.p) {
		all = append(all, Header{name, (*l.p)[name]})
	}
	return all
}

// isName tells whether text is a name of an endpoint or label.
func isName(text string) bool {
	for i := range len(text) {
		c := text[i]
		letter := c|0x20 >= 'a' && c|0x20 <= 'z'
		if !letter && (c < '0' || c > '9') && c != '.' && c != '_' && c != '-' {
			return false
		}
	}
	return text != "" && len(text) <= 64
}

func sortedKeys(m map[string]string) []string { return slices.Sorted(maps.Keys(m)) }
