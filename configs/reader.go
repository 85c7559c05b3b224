package configs

import (
	"fmt"
	"strings"

	"github.com/goccy/go-yaml/ast"
)

// reader walks one document and collects what is wrong with it.
type reader struct {
	file   string // as shown in problems
	base   string // the directory that file:PATH is relative to
	getenv func(string) (string, bool)

	aliases map[*ast.AliasNode]ast.Node
	merging int // depth of merge keys
	merged  int // entries they brought in

	reference []Setting // made when it is first needed

	where    map[string]place // by the path of the key: what was set, and where
	failed   map[string]bool  // by the path of the key: what was set and could not be read
	problems []*Problem
}

// place is where a value was written: a file's line and column, or a flag.
type place struct {
	source    string
	line, col int
}

func newReader(file, base string, getenv func(string) (string, bool)) *reader {
	return &reader{
		file: file, base: base, getenv: getenv,
		aliases: make(map[*ast.AliasNode]ast.Node),
		where:   make(map[string]place),
		failed:  make(map[string]bool),
	}
}

func (r *reader) place(n ast.Node) place {
	line, col := position(n)
	return place{r.file, line, col}
}

// add reports a problem with the value at path.
func (r *reader) add(n ast.Node, path, format string, args ...any) {
	r.failed[path] = true
	r.addAt(r.place(n), path, format, args...)
}

func (r *reader) addAt(at place, path, format string, args ...any) {
	r.problems = append(r.problems, &Problem{
		File: at.source, Line: at.line, Col: at.col, Key: path, Text: fmt.Sprintf(format, args...),
	})
}

// has tells whether the file or a flag sets the key.
func (r *reader) has(path string) bool {
	_, ok := r.where[path]
	return ok
}

// require reports a rule between settings that does not hold, at the first of the keys that is set. It keeps silent
// where one of them could not be read: the reason was reported already.
func (r *reader) require(ok bool, keys []string, format string, args ...any) {
	if ok {
		return
	}
	at, path := place{source: r.file}, keys[0]
	for _, key := range keys {
		if r.failed[key] {
			return
		}
	}
	for _, key := range keys {
		if set, ok := r.where[key]; ok {
			at, path = set, key
			break
		}
	}
	r.addAt(at, path, format, args...)
}

// text reads a scalar that is no secret.
func (r *reader) text(n ast.Node, path string) (string, bool) {
	text, ok := r.rawText(n, path)
	if ok && strings.Contains(text, "${") {
		r.add(n, path, "${VAR} works only in secrets (sign.secrets, headers.set, sync.dsn, outbound_proxy); write the value itself")
		return "", false
	}
	return text, ok
}

func (r *reader) rawText(n ast.Node, path string) (string, bool) {
	v := r.resolve(n)
	if v == nil {
		r.add(n, path, "the value is missing; write one, or remove the key")
		return "", false
	}
	text, ok := scalarText(v)
	if !ok {
		r.add(n, path, "a single value is wanted here, not a list or mapping")
	}
	return text, ok
}

// items returns the elements of a list; ok is false where n is none.
func (r *reader) items(n ast.Node, path string) (list []ast.Node, ok bool) {
	sequence, ok := r.resolve(n).(*ast.SequenceNode)
	if !ok {
		r.add(n, path, "a list is wanted here; write [a, b], or one element per line after a dash")
		return nil, false
	}
	return sequence.Values, true
}
