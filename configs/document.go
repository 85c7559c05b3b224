package configs

import (
	"errors"
	"fmt"
	"strings"

	"github.com/goccy/go-yaml"
	"github.com/goccy/go-yaml/ast"
	"github.com/goccy/go-yaml/parser"
)

// pair is one entry of a YAML mapping.
type pair struct {
	name       string
	key, value ast.Node
}

// Bounds against a file that makes the parser or the reader work for ever.
const (
	maxFileBytes = 16 * mib // tens of thousands of endpoints
	maxDepth     = 200      // of nested brackets and of aliases in aliases; the deepest setting is at 5
	maxMerged    = 100_000  // entries that merge keys may bring in
)

// parseDocument returns the root node of the only document in data, or nil where the file is empty.
func (r *reader) parseDocument(data []byte) ast.Node {
	text := strings.TrimPrefix(string(data), "\ufeff")
	if line := tooDeep(text); line > 0 {
		r.addAt(place{r.file, line, 0}, "", "brackets are nested too deeply; no setting needs more than five levels")
		return nil
	}
	file, err := parseYAML(text)
	if err != nil {
		r.addSyntax(err)
		return nil
	}
	var root ast.Node
	for _, doc := range file.Docs {
		if _, directive := doc.Body.(*ast.DirectiveNode); doc.Body == nil || directive {
			continue
		}
		if root != nil {
			r.add(doc.Body, "", "the file has a second YAML document (after ---); put everything into one")
			break
		}
		root = doc.Body
		ast.Walk(&anchors{r: r, seen: make(map[string]ast.Node)}, root)
	}
	return root
}

// parseYAML keeps a panic of the parser from ending a running Postern at a reload.
func parseYAML(text string) (file *ast.File, err error) {
	defer func() {
		if recover() != nil {
			err = errors.New("the file is not valid YAML")
		}
	}()
	return parser.ParseBytes([]byte(text), 0, parser.AllowDuplicateMapKey()) // duplicates: found in pairs, all of them
}

// addSyntax reports what the parser says without the lines of the file that it shows: they may hold secrets.
func (r *reader) addSyntax(err error) {
	at, message := place{source: r.file}, "the file is not valid YAML"
	var located yaml.Error
	if errors.As(err, &located) {
		message = "not valid YAML: " + located.GetMessage()
		if t := located.GetToken(); t != nil && t.Position != nil {
			at.line, at.col = t.Position.Line, t.Position.Column
		}
	}
	if strings.Contains(message, "reserved character") || strings.Contains(message, "mapping value is not allowed") {
		message += "; put the value in quotes, or check the indentation"
	}
	r.addAt(at, "", "%s", message)
}

// tooDeep returns the line where brackets nest deeper than any setting does, or 0. It counts brackets in texts and
// comments too, which is why its limit is generous.
func tooDeep(text string) int {
	depth, line := 0, 1
	for i := range len(text) {
		switch text[i] {
		case '[', '{':
			if depth++; depth > maxDepth {
				return line
			}
		case ']', '}':
			depth = max(0, depth-1)
		case '\n':
			line++
		}
	}
	return 0
}

// anchors finds out, in the order of the file, which node each alias stands for.
type anchors struct {
	r    *reader
	seen map[string]ast.Node
}

// Visit is called for every node of the document.
func (a *anchors) Visit(n ast.Node) ast.Visitor {
	switch n := n.(type) {
	case *ast.AnchorNode:
		if n.Name != nil && n.Value != nil {
			a.seen[n.Name.GetToken().Value] = n.Value
		}
	case *ast.AliasNode:
		if n.Value != nil {
			a.r.aliases[n] = a.seen[n.Value.GetToken().Value]
		}
	}
	return a
}

// resolve follows anchors, tags and aliases to the node that has the value. It returns nil for a null.
func (r *reader) resolve(n ast.Node) ast.Node {
	for range maxDepth {
		switch v := n.(type) {
		case nil, *ast.NullNode:
			return nil
		case *ast.AnchorNode:
			n = v.Value
		case *ast.TagNode:
			n = v.Value
		case *ast.AliasNode:
			to := r.aliases[v]
			if to == nil {
				r.add(v, "", "the alias %s names no anchor above it", quote(v.String()))
				return nil
			}
			n = to
		default:
			return n
		}
	}
	return nil
}

// pairs returns the entries of a mapping, those of merge keys (<<) after its own. ok is false where n is none.
func (r *reader) pairs(n ast.Node, path string) (list []pair, ok bool) {
	m, ok := r.resolve(n).(ast.MapNode)
	if !ok {
		return nil, false
	}
	seen := make(map[string]bool)
	var merges []ast.Node
	for it := m.MapRange(); it.Next(); {
		if it.Key().IsMergeKey() {
			merges = append(merges, it.Value())
			continue
		}
		name := keyText(it.Key())
		if seen[name] {
			r.add(it.Key(), joinPath(path, name), "the key is there twice; remove one")
			continue
		}
		seen[name] = true
		list = append(list, pair{name, it.Key(), it.Value()})
	}
	for _, merge := range merges {
		list = r.merge(list, seen, merge, path)
	}
	return list, true
}

func (r *reader) merge(list []pair, seen map[string]bool, n ast.Node, path string) []pair {
	from := []ast.Node{n}
	if sequence, ok := r.resolve(n).(*ast.SequenceNode); ok {
		from = sequence.Values
	}
	for _, source := range from {
		if r.merging >= maxDepth || r.merged >= maxMerged {
			r.add(n, path, "merge keys (<<) bring in too much; write the values out")
			return list
		}
		r.merging++
		more, ok := r.pairs(source, path)
		r.merging--
		if !ok {
			r.add(n, path, "a merge key (<<) needs an alias of a mapping, such as <<: *common")
		}
		r.merged += len(more)
		for _, p := range more {
			if !seen[p.name] {
				seen[p.name] = true
				list = append(list, p)
			}
		}
	}
	return list
}

// keyText is a mapping's key as text.
func keyText(key ast.MapKeyNode) string {
	if k, ok := key.(*ast.MappingKeyNode); ok && k.Value != nil {
		return k.Value.GetToken().Value
	}
	if t := key.GetToken(); t != nil {
		return t.Value
	}
	return ""
}

// scalarText is the text of a scalar: a number's digits as they were written, a block's lines.
func scalarText(n ast.Node) (text string, ok bool) {
	switch v := n.(type) {
	case *ast.LiteralNode:
		return v.Value.Value, true
	case *ast.StringNode:
		return v.Value, true
	case ast.ScalarNode:
		return v.GetToken().Value, true
	}
	return "", false
}

// position is where a node begins: a block mapping at its first key, since its own token is the first colon.
func position(n ast.Node) (line, col int) {
	if m, ok := n.(*ast.MappingNode); ok && !m.IsFlowStyle && len(m.Values) > 0 {
		n = m.Values[0].Key
	}
	if m, ok := n.(*ast.MappingValueNode); ok && m.Key != nil {
		n = m.Key
	}
	if n == nil {
		return 0, 0
	}
	t := n.GetToken()
	if t == nil || t.Position == nil {
		return 0, 0
	}
	return t.Position.Line, t.Position.Column
}

func joinPath(path, name string) string {
	if path == "" {
		return name
	}
	return path + "." + name
}

func indexPath(path string, i int) string { return fmt.Sprintf("%s[%d]", path, i) }
