package configs

import (
	"github.com/goccy/go-yaml/ast"
)

// pair is one entry of a YAML mapping.
type pair struct {
	name       string
	key, value ast.Node
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

// merge appends what the mappings behind a merge key have and seen has not.
func (r *reader) merge(list []pair, seen map[string]bool, n ast.Node, path string) []pair {
	from := []ast.Node{n}
	if sequence, ok := r.resolve(n).(*ast.SequenceNode); ok {
		from = sequence.Values
	}
	for _, source := range from {
		if r.merged++; r.merged > maxMerged || r.merging >= maxMerging {
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
