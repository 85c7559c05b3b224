package configs

import (
	"errors"
	"strings"

	"github.com/goccy/go-yaml"
	"github.com/goccy/go-yaml/ast"
	"github.com/goccy/go-yaml/parser"
)

// Bounds against a file that makes the parser or the reader work for ever.
const (
	maxFileBytes = 16 * mib // tens of thousands of endpoints
	maxDepth     = 200      // of nested brackets and of aliases in aliases; the deepest setting is at 5
	maxMerged    = 100_000  // mappings and entries that merge keys may bring in
	maxMerging   = 10       // merge keys in what a merge key brings in
)

// parseDocument returns the root node of the only document in data, or nil where the file is empty.
func (r *reader) parseDocument(data []byte) ast.Node {
	text := strings.TrimPrefix(string(data), "\ufeff")
	if line := tooDeep(text); line > 0 {
		r.addAt(place{r.file, line, 0}, "", "nested too deeply; no setting needs more than five levels")
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
	if strings.Contains(message, "'\t'") {
		message += "; indent with blanks: tabs do not indent in YAML"
	}
	if strings.Contains(message, "reserved character") || strings.Contains(message, "mapping value is not allowed") {
		message += "; put the value in quotes, or check the indentation"
		if strings.Contains(message, "mapping value is not allowed") {
			message += "; behind a value that ends with a colon, as in listen: unix:, something is missing behind it (unix:/run/postern.sock)"
		}
	}
	r.addAt(at, "", "%s", message)
}

// tooDeep returns the line where brackets, or dashes on one line, nest deeper than any setting does, or 0: the parser's
// time grows with the square of the depth. It counts brackets in texts and comments too, which is why its limit is
// generous.
func tooDeep(text string) int {
	depth, line := 0, 0
	for content := range strings.Lines(text) {
		line++
		depth += strings.Count(content, "[") + strings.Count(content, "{")
		if depth > maxDepth || strings.Count(content, "- ")+strings.Count(content, "? ") > maxDepth {
			return line
		}
		depth = max(0, depth-strings.Count(content, "]")-strings.Count(content, "}"))
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
