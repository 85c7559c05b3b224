package configs

import (
	"errors"
	"strings"

	"github.com/goccy/go-yaml/ast"
)

// secret is a single secret value.
type secret struct {
	p *string
	// check refuses what cannot be used; its text must not repeat the secret.
	check func(string) error
	// emptyIfUnset lets a value that is nothing but one unset variable stand for an empty one.
	emptyIfUnset bool
}

func (s secret) read(r *reader, n ast.Node, path string) {
	text, ok := r.rawText(n, path)
	if !ok {
		return
	}
	resolved, err := r.resolveSecret(text)
	if unset, is := errors.AsType[errUnset](err); is && s.emptyIfUnset && text == "${"+unset.name+"}" {
		resolved, err = "", nil
	}
	if err == nil {
		err = s.check(resolved)
	}
	if err != nil {
		r.add(n, path, "%v", err)
		return
	}
	*s.p = resolved
}

func (s secret) show() any { return mask(*s.p) }
func (s secret) raw() any  { return *s.p }

func mask(text string) string {
	if text == "" {
		return ""
	}
	return masked
}

// secretList is sign.secrets.
type secretList struct{ p *[]string }

func (l secretList) nullable() {}

func (l secretList) read(r *reader, n ast.Node, path string) {
	nodes, ok := r.items(n, path)
	if !ok {
		return
	}
	*l.p = nil
	for i, node := range nodes {
		at := indexPath(path, i)
		r.where[at] = r.place(node)
		text, ok := r.secretText(node, at)
		if ok && strings.TrimSpace(text) == "" {
			r.add(node, at, "the secret is empty; write one, or remove the entry")
			ok = false
		}
		if !ok {
			r.failed[path] = true
			continue
		}
		*l.p = append(*l.p, text)
	}
}

func (l secretList) show() any {
	var values []any
	for _, text := range *l.p {
		values = append(values, mask(text))
	}
	if values == nil {
		return nil
	}
	return values
}

func (l secretList) raw() any { return append([]string{}, *l.p...) }
