package configs

import (
	"fmt"
	"slices"
	"strings"

	"github.com/goccy/go-yaml/ast"
)

// kind is the type of a setting, bound to the place in Config where its value lives.
type kind interface {
	// read sets the value from a node that is not null, or reports why it cannot.
	read(r *reader, n ast.Node, path string)
	// show returns the value for YAML: a string, int64, float64, bool, []any or mapping; nil leaves the key out.
	// Secrets are masked.
	show() any
	// raw returns the value itself, to compare it with another one.
	raw() any
}

// field is one key of a section.
type field struct {
	name    string
	doc     string
	restart bool // a change takes effect only with a restart
	kind    kind
}

// section is a mapping with known keys.
type section []field

func (s section) read(r *reader, n ast.Node, path string) {
	pairs, ok := r.pairs(n, path)
	if !ok {
		r.add(n, path, "a mapping with the keys %s is wanted here", strings.Join(s.names(), ", "))
		return
	}
	byName := make(map[string]pair, len(pairs))
	for _, p := range pairs {
		byName[p.name] = p
		if !slices.Contains(s.names(), p.name) {
			r.add(p.key, joinPath(path, p.name), "unknown key; %s", s.advice(r, p.name))
		}
	}
	for _, f := range s { // in our order: endpoints are read after the defaults that they start from
		p, ok := byName[f.name]
		key := joinPath(path, f.name)
		if !ok {
			continue
		}
		if r.resolve(p.value) == nil {
			r.readNull(f, p, key)
			continue
		}
		r.where[key] = r.place(p.value)
		f.kind.read(r, p.value, key)
	}
}

// readNull accepts a section or list whose lines are all commented out; a single value must be there.
func (r *reader) readNull(f field, p pair, key string) {
	if _, ok := f.kind.(interface{ nullable() }); !ok {
		r.add(p.value, key, "the value is missing; write one, or remove the key")
	}
}

func (s section) nullable() {}

func (s section) show() any {
	var m mapping
	for _, f := range s {
		if v := f.kind.show(); v != nil {
			m = append(m, item{f.name, v})
		}
	}
	if m == nil {
		return nil
	}
	return m
}

func (s section) raw() any {
	values := make([]any, len(s))
	for i, f := range s {
		values[i] = f.kind.raw()
	}
	return values
}

func (s section) names() []string {
	names := make([]string, len(s))
	for i, f := range s {
		names[i] = f.name
	}
	return names
}

// advice tells what to write instead of a key that the section does not have.
func (s section) advice(r *reader, name string) string {
	if near, ok := suggest(name, s.names()); ok {
		return fmt.Sprintf("did you mean %s?", near)
	}
	if homes := r.homesOf(name); len(homes) > 0 {
		return fmt.Sprintf("it belongs under %s", strings.Join(homes, " or "))
	}
	return fmt.Sprintf("known here: %s", strings.Join(s.names(), ", "))
}

// scalar is a single value with a parser of its text.
type scalar[T any] struct {
	p      *T
	parse  func(string) (T, error)
	format func(T) any
}

func (s scalar[T]) read(r *reader, n ast.Node, path string) {
	text, ok := r.text(n, path)
	if !ok {
		return
	}
	v, err := s.parse(text)
	if err != nil {
		r.add(n, path, "%v", err)
		return
	}
	*s.p = v
}

func (s scalar[T]) show() any { return s.format(*s.p) }
func (s scalar[T]) raw() any  { return *s.p }

// list is a list of single values.
type list[T any] struct {
	p      *[]T
	parse  func(string) (T, error)
	format func(T) any
}

func (l list[T]) nullable() {}

func (l list[T]) read(r *reader, n ast.Node, path string) {
	nodes, ok := r.items(n, path)
	if !ok {
		return
	}
	values := make([]T, 0, len(nodes))
	for i, node := range nodes {
		at := indexPath(path, i)
		r.where[at] = r.place(node)
		text, ok := r.text(node, at)
		if !ok {
			r.failed[path] = true
			continue
		}
		v, err := l.parse(text)
		if err != nil {
			r.add(node, at, "%v", err)
			r.failed[path] = true
			continue
		}
		values = append(values, v)
	}
	*l.p = values
}

func (l list[T]) show() any {
	values := make([]any, 0, len(*l.p))
	for _, v := range *l.p {
		values = append(values, l.format(v))
	}
	return values
}

// raw makes no difference between an empty list and none.
func (l list[T]) raw() any { return append([]T{}, *l.p...) }
