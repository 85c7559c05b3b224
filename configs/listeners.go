package configs

import (
	"os"
	"path/filepath"
	"regexp"

	"github.com/goccy/go-yaml/ast"
)

// Listeners finds out where the Postern of a configuration listens, and with which token files, and looks at nothing
// else: who asks a running Postern must not be kept from it by a mistake that the next start would meet, or by a secret
// that only Postern may read. Token files are named and not read.
//
// The addresses are always usable ones: where the file, or one of these four settings in it, cannot be read, they are
// the defaults, and the error says why.
func Listeners(o Options) (ingest, admin Listener, err error) {
	if o.Getenv == nil {
		o.Getenv = os.LookupEnv
	}
	c := Defaults()
	path, data, fileErr := o.readFile()
	r := newReader(path, filepath.Dir(inDir(o.Dir, path)), o.Getenv)
	c.glance(r, data)
	o = Options{Listen: o.Listen, AdminListen: o.AdminListen, Getenv: func(string) (string, bool) { return "", false }}
	o.apply(c, r)
	for _, l := range []*Listener{&c.Listen, &c.Admin} {
		if l.TokenFile != "" {
			l.TokenFile = inDir(r.base, l.TokenFile)
		}
	}
	if fileErr != nil {
		return c.Listen, c.Admin, fileErr
	}
	return c.Listen, c.Admin, join(r.problems)
}

// glance reads the four settings. Of a file that is no YAML it reads the blocks that hold them.
func (c *Config) glance(r *reader, data []byte) {
	root := r.parseDocument(data)
	if root == nil {
		if text := blocks(string(data), listenerKey); text != "" {
			r.problems = nil
			root = r.parseDocument([]byte(text))
		}
	}
	top := r.entries(root)
	r.pick(c.fields(), top, "", "listen", "token_file")
	if admin, ok := top["admin"]; ok {
		r.pick(c.adminFields(), r.entries(admin), "admin", "listen", "token_file")
	}
}

// entries are a mapping's values by their keys; what is no mapping has none.
func (r *reader) entries(n ast.Node) map[string]ast.Node {
	before := len(r.problems)
	pairs, _ := r.pairs(n, "")
	r.problems = r.problems[:before] // a key that is there twice is for the check to tell
	values := make(map[string]ast.Node, len(pairs))
	for _, p := range pairs {
		values[p.name] = p.value
	}
	return values
}

// pick reads some fields of a section.
func (r *reader) pick(s section, values map[string]ast.Node, path string, names ...string) {
	for _, name := range names {
		value, ok := values[name]
		if !ok || r.resolve(value) == nil {
			continue
		}
		for _, f := range s {
			if f.name == name {
				f.kind.read(r, value, joinPath(path, name))
			}
		}
	}
}

var listenerKey = regexp.MustCompile(`^(listen|token_file|admin)\s*:`)
