package redact_test

import (
	"go/ast"
	"go/token"
	"go/types"
	"maps"
)

// fact is what is known of where a text comes from.
type fact struct {
	why    string              // it may hold a secret, for this reason; empty: not known to
	near   bool                // the reason is only that it was made of bytes, which says nothing once they are decoded
	params map[*types.Var]bool // it may hold what these parameters hold
}

func (f fact) or(g fact) fact {
	if f.why == "" || f.near && g.why != "" {
		f.why, f.near = g.why, g.near
	}
	if len(g.params) > 0 {
		merged := maps.Clone(g.params)
		maps.Copy(merged, f.params)
		f.params = merged
	}
	return f
}

// flow follows texts through the program: into variables, fields and results, and back from a place where they show to
// the parameters that reach it. It does not know about order, conditions or pointers: what a variable holds anywhere in
// its function, it holds everywhere.
type flow struct {
	*program
	held    map[types.Object]fact // of variables, fields, and functions' results
	shown   map[*types.Var]door   // parameters that reach a place where they show
	byName  map[string][]*types.Func
	found   map[token.Pos]string
	excused map[string]bool // lines, as line writes them
	changed bool
}

func newFlow(p *program) *flow {
	return &flow{program: p, held: map[types.Object]fact{}, shown: map[*types.Var]door{}, byName: map[string][]*types.Func{}, found: map[token.Pos]string{},
		excused: map[string]bool{}}
}

// run goes over the files until nothing new is learnt.
func (f *flow) run(files []*ast.File) {
	f.excuses(files)
	for _, obj := range f.info.Defs {
		if fn, ok := obj.(*types.Func); ok && fn.Signature().Recv() != nil {
			f.byName[fn.Name()] = append(f.byName[fn.Name()], fn)
		}
	}
	for f.changed = true; f.changed; {
		f.changed = false
		for _, file := range files {
			for _, decl := range file.Decls {
				f.decl(decl)
			}
		}
	}
}

func (f *flow) decl(decl ast.Decl) {
	var function types.Object
	if fn, ok := decl.(*ast.FuncDecl); ok {
		function = f.info.Defs[fn.Name]
	}
	depth := 0 // of function literals: their results are not the function's
	var visit func(n ast.Node) bool
	visit = func(n ast.Node) bool {
		switch n := n.(type) {
		case *ast.FuncLit:
			depth++
			ast.Inspect(n.Body, visit)
			depth--
			return false
		case *ast.ReturnStmt:
			if function != nil && depth == 0 {
				f.returned(function, n)
			}
		default:
			f.node(n)
		}
		return true
	}
	ast.Inspect(decl, visit)
}

// returned learns what a function's results hold.
func (f *flow) returned(function types.Object, n *ast.ReturnStmt) {
	for _, r := range n.Results {
		if !isError(f.typeOf(r)) {
			f.hold(function, f.expr(r))
		}
	}
	if len(n.Results) == 0 {
		for v := range function.(*types.Func).Signature().Results().Variables() {
			if !isError(v.Type()) {
				f.hold(function, f.held[v])
			}
		}
	}
}

// node learns from one statement or expression.
func (f *flow) node(n ast.Node) {
	switch n := n.(type) {
	case *ast.AssignStmt:
		for i, to := range n.Lhs {
			from := n.Rhs[min(i, len(n.Rhs)-1)]
			f.assign(to, from)
		}
	case *ast.ValueSpec:
		for i, name := range n.Names {
			if len(n.Values) > 0 {
				f.assign(name, n.Values[min(i, len(n.Values)-1)])
			}
		}
	case *ast.RangeStmt:
		if n.Value != nil { // a key is a number, or a name
			f.assign(n.Value, n.X)
		}
	case *ast.CompositeLit:
		f.literal(n)
	case *ast.CallExpr:
		f.checkCall(n)
	}
}

// assign lets a variable or field hold what an expression does.
func (f *flow) assign(to, from ast.Expr) {
	if !carries(f.typeOf(to)) || f.excused[f.line(from)] {
		return
	}
	obj := f.object(to)
	if obj == nil {
		return
	}
	got := f.expr(from)
	if sel, ok := to.(*ast.SelectorExpr); ok {
		f.checkField(typeName(f.typeOf(sel.X))+"."+sel.Sel.Name, from, got)
	}
	f.hold(obj, got)
}

func (f *flow) hold(obj types.Object, got fact) {
	if v, ok := obj.(*types.Var); got.near && (!ok || v.IsField()) {
		got.why, got.near = "", false
	}
	old := f.held[obj]
	merged := old.or(got)
	if (merged.why != "") != (old.why != "") || merged.near != old.near || len(merged.params) != len(old.params) {
		f.held[obj] = merged
		f.changed = true
	}
}

// object is the variable or field that an expression names; an element is as good as the whole.
func (f *flow) object(x ast.Expr) types.Object {
	switch x := ast.Unparen(x).(type) {
	case *ast.Ident:
		if obj := f.info.Defs[x]; obj != nil {
			return obj
		}
		return f.info.Uses[x]
	case *ast.SelectorExpr:
		return f.info.Uses[x.Sel]
	case *ast.IndexExpr:
		return f.object(x.X)
	case *ast.StarExpr:
		return f.object(x.X)
	}
	return nil
}

// literal looks at the fields that a struct is made with.
func (f *flow) literal(n *ast.CompositeLit) {
	st, ok := under(f.typeOf(n)).(*types.Struct)
	if !ok {
		return
	}
	for i, element := range n.Elts {
		field, value := (*types.Var)(nil), element
		if kv, ok := element.(*ast.KeyValueExpr); ok {
			field, _ = f.info.Uses[kv.Key.(*ast.Ident)].(*types.Var)
			value = kv.Value
		} else if i < st.NumFields() {
			field = st.Field(i)
		}
		if field == nil || !carries(field.Type()) {
			continue
		}
		got := f.expr(value)
		f.checkField(typeName(f.typeOf(n))+"."+field.Name(), value, got)
		f.hold(field, got)
	}
}

func (f *flow) typeOf(x ast.Expr) types.Type {
	if t := f.info.TypeOf(x); t != nil {
		return t
	}
	return types.Typ[types.Invalid]
}
