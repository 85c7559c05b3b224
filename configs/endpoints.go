package configs

import (
	"fmt"

	"github.com/goccy/go-yaml/ast"

	"postern/proxy/target"
)

// endpointList is endpoints: each starts from the defaults as the file left them.
type endpointList struct {
	p        *[]Endpoint
	defaults *Policy
}

func (l endpointList) nullable() {}

func (l endpointList) read(r *reader, n ast.Node, path string) {
	nodes, ok := r.items(n, path)
	if !ok {
		return
	}
	*l.p = make([]Endpoint, len(nodes)) // its elements must not move: the settings are bound to them
	for i, node := range nodes {
		e, at := &(*l.p)[i], indexPath(path, i)
		e.Policy = *l.defaults
		r.where[at] = r.place(node)
		e.fields().read(r, node, at)
		for _, key := range []string{"name", "url"} {
			if key := joinPath(at, key); !r.has(key) && !r.failed[key] && !r.failed[at] {
				r.add(node, key, "the key is missing; every endpoint has a name and a url")
			}
		}
	}
}

func (l endpointList) show() any {
	values := make([]any, len(*l.p))
	for i := range *l.p {
		values[i] = (*l.p)[i].fields().show()
	}
	return values
}

func (l endpointList) raw() any { return nil } // none of it needs a restart

func (e *Endpoint) fields() section {
	s := section{
		{name: "name", kind: plain(&e.Name, parseEndpointName),
			doc: "What /to/NAME, logs and metrics call it: 1 to 64 of A-Z, a-z, 0-9, '.', '_' and '-'."},
		{name: "url", kind: address(&e.URL), doc: "Where its events go; what follows /to/NAME is appended."},
		{name: "match", kind: list[target.Target]{&e.Match, parseMatch, func(t target.Target) any { return showTarget(t) }},
			doc: "Prefixes of ad hoc targets that use this policy too: whole origin, then whole path segments; the longest one wins. A path with .. in it lies under a whole origin alone."},
	}
	return append(append(s, e.Policy.fields()...), e.Policy.endpointOnly()...)
}

// adHocLabel is the metrics' name for all ad hoc endpoints beyond the first hundred.
const adHocLabel = "ad_hoc"

func parseEndpointName(text string) (string, error) {
	switch {
	case !isName(text):
		return "", fmt.Errorf("%s is not a name; use 1 to 64 of A-Z, a-z, 0-9, '.', '_' and '-'", quote(text))
	case text == "." || text == "..":
		return "", fmt.Errorf("%s cannot be a name: clients take it out of /to/%s; choose another", quote(text), text)
	case text == adHocLabel:
		return "", fmt.Errorf("%s is what metrics call ad hoc endpoints; choose another name", quote(text))
	}
	return text, nil
}
