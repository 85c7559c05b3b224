package configs

import (
	"fmt"

	"github.com/goccy/go-yaml/ast"
)

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
