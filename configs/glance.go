package configs

import (
	"slices"
	"strings"

	"github.com/goccy/go-yaml/ast"
)

// glance reads a listener's address and token file, and tells whether the file gives the address. Of a file that is no
// YAML it reads the blocks that hold them. Problems are those that leave the address in doubt, and of the token file.
func (c *Config) glance(r *reader, data []byte, f face) (known bool) {
	root := r.parseDocument(data)
	if r.file != "" && r.resolve(root) == nil && len(r.problems) == 0 {
		r.addAt(place{source: r.file}, "", "the file has no key at all: %s", BlankAdvice)
		return false
	}
	if text := blocks(string(data), f.lines); root == nil && text != "" {
		root = r.parseDocument([]byte(text))
	}
	top, ok := r.pairs(root, "")
	if !ok && r.resolve(root) != nil {
		r.add(root, "", "a mapping with the keys %s is wanted here", strings.Join(c.fields().names(), ", "))
	}
	own, fields := top, c.fields()
	if f.section != "" {
		own, fields = r.section(top, f.section), c.adminFields()
	}
	r.pick(fields, own, f)
	r.keep("", f.section, f.listen, f.token)
	twice := f.section != "" && r.failed[f.section]
	if r.has(f.listen) && !r.failed[f.listen] && !twice {
		r.keep(f.token)
		return true
	}
	r.misplaced(c.fields(), top, "")
	if f.section != "" {
		r.unknown(fields, own, f.section, func(pair) bool { return true })
	}
	return false
}

// section are the entries of a section.
func (r *reader) section(top []pair, name string) []pair {
	for _, p := range top {
		if p.name != name || r.resolve(p.value) == nil {
			continue
		}
		own, ok := r.pairs(p.value, name)
		if !ok {
			r.add(p.value, name, "a section is wanted here, such as %s: { listen: 127.0.0.1:8090 }", name)
		}
		return own
	}
	return nil
}

// pick reads the two settings of a face.
func (r *reader) pick(s section, own []pair, f face) {
	for _, p := range own {
		key := joinPath(f.section, p.name)
		if key != f.listen && key != f.token {
			continue
		}
		field := s[slices.Index(s.names(), p.name)]
		if r.resolve(p.value) == nil {
			r.readNull(field, p, key)
			continue
		}
		r.where[key] = r.place(p.value)
		field.kind.read(r, p.value, key)
	}
}

// misplaced reports the unknown keys, at the top and in its sections, that an address may be meant by.
func (r *reader) misplaced(s section, top []pair, path string) {
	r.unknown(s, top, path, func(p pair) bool {
		return near(p.name, "admin", "listen") || r.holdsAddress(p.value)
	})
	for _, p := range top {
		i := slices.Index(s.names(), p.name)
		if i < 0 || path != "" {
			continue
		}
		if inner, ok := s[i].kind.(section); ok && p.name != "admin" {
			r.misplaced(inner, r.entries(p.value), p.name)
		}
	}
}

// unknown reports the keys that a section does not have, where also finds them suspicious.
func (r *reader) unknown(s section, own []pair, path string, also func(pair) bool) {
	for _, p := range own {
		if !slices.Contains(s.names(), p.name) && also(p) {
			r.add(p.key, joinPath(path, p.name), "unknown key; %s", s.advice(r, p.name))
		}
	}
}

// holdsAddress tells whether a value is an address to listen on, or a mapping that has one.
func (r *reader) holdsAddress(n ast.Node) bool {
	v := r.resolve(n)
	if v == nil {
		return false
	}
	if text, ok := scalarText(v); ok {
		_, err := parseListen(text)
		return err == nil
	}
	return slices.ContainsFunc(r.entries(v), func(p pair) bool { return near(p.name, "listen") })
}

// near tells whether one of the words may have been meant.
func near(name string, words ...string) bool {
	_, ok := suggest(name, words)
	return ok
}

// entries are a mapping's entries, whatever is wrong with it; what is no mapping has none.
func (r *reader) entries(n ast.Node) []pair {
	before := len(r.problems)
	list, _ := r.pairs(n, "")
	r.problems = r.problems[:before]
	return list
}
