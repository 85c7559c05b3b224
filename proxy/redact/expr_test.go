package redact_test

import (
	"fmt"
	"go/ast"
	"go/types"
	"strings"
)

// expr tells where the text of an expression comes from.
func (f *flow) expr(x ast.Expr) fact {
	tv := f.info.Types[x]
	if tv.Value != nil || tv.Type != nil && harmless(tv.Type) {
		return fact{}
	}
	switch x := x.(type) {
	case *ast.ParenExpr:
		return f.expr(x.X)
	case *ast.UnaryExpr:
		return f.expr(x.X)
	case *ast.StarExpr:
		return f.expr(x.X)
	case *ast.BinaryExpr:
		return f.expr(x.X).or(f.expr(x.Y))
	case *ast.IndexExpr:
		return f.expr(x.X)
	case *ast.SliceExpr:
		return f.expr(x.X)
	case *ast.TypeAssertExpr:
		return f.expr(x.X).or(byType(tv.Type))
	case *ast.CompositeLit:
		return f.elements(x)
	case *ast.Ident:
		return f.named(f.info.Uses[x]).or(byType(tv.Type))
	case *ast.SelectorExpr:
		return f.selector(x)
	case *ast.CallExpr:
		return f.result(x)
	}
	return fact{}
}

func (f *flow) elements(x *ast.CompositeLit) (got fact) {
	if got = byType(f.typeOf(x)); got.why != "" {
		return got
	}
	for _, element := range x.Elts {
		if kv, ok := element.(*ast.KeyValueExpr); ok {
			element = kv.Value
		}
		got = got.or(f.expr(element))
	}
	return got
}

// named is what a variable holds. A parameter holds whatever its callers give it.
func (f *flow) named(obj types.Object) fact {
	v, ok := obj.(*types.Var)
	if !ok {
		return fact{}
	}
	got := f.held[v]
	if v.Kind() == types.ParamVar {
		got = got.or(fact{params: map[*types.Var]bool{v: true}})
	}
	if telling[strings.ToLower(v.Name())] && isText(v.Type()) && v.Kind() != types.LocalVar && v.Kind() != types.FieldVar {
		got = got.or(fact{why: "it is called " + v.Name()})
	}
	return got
}

// selector is what a field holds: a field that is named for something secret, of a type that is not known to be free of
// it, does.
func (f *flow) selector(x *ast.SelectorExpr) fact {
	obj := f.info.Uses[x.Sel]
	v, ok := obj.(*types.Var)
	if !ok {
		return fact{}
	}
	if !v.IsField() {
		return f.named(v)
	}
	owner := typeName(f.typeOf(x.X))
	if harmlessMembers[owner+"."+v.Name()] {
		return fact{}
	}
	if secretTypes[owner] && isText(v.Type()) {
		return fact{why: "a part of a " + owner}
	}
	if telling[strings.ToLower(v.Name())] && isText(v.Type()) {
		return fact{why: fmt.Sprintf("%s.%s", owner, v.Name())}
	}
	return f.held[v].or(byType(v.Type()))
}

// result is what a call returns: what is known of the function's own results, and of everything that goes into it.
func (f *flow) result(x *ast.CallExpr) (got fact) {
	if f.info.Types[x.Fun].IsType() { // a conversion
		return f.expr(x.Args[0])
	}
	fn := f.callee(x)
	if fn != nil && cleaner(fn) {
		return fact{}
	}
	if sel, ok := ast.Unparen(x.Fun).(*ast.SelectorExpr); ok && f.info.Selections[sel] != nil {
		on := f.typeOf(sel.X)
		owner := typeName(on)
		switch {
		case harmlessMembers[owner+"."+sel.Sel.Name]:
			return fact{}
		case sel.Sel.Name == "Error" && isError(on):
			return fact{why: "the text of an error, which redact.Error would clean"}
		case secretTypes[owner]:
			return fact{why: owner + "." + sel.Sel.Name}
		}
		if _, local := f.object(sel.X).(*types.Var); local && isText(on) {
			got = f.expr(sel.X)
		}
	}
	if bodies := f.bodies(fn); bodies != nil {
		return f.ownResult(x, bodies)
	}
	for _, arg := range x.Args {
		got = got.or(f.expr(arg))
	}
	return got
}

// bodies are the functions of ours that a call may run: the one that it names, or the methods of that name where it is
// an interface's. Nil: none that can be looked into.
func (f *flow) bodies(fn *types.Func) []*types.Func {
	if fn == nil || fn.Pkg() == nil || f.ours[fn.Pkg().Path()] == nil {
		return nil
	}
	if recv := fn.Signature().Recv(); recv != nil && types.IsInterface(recv.Type()) {
		return f.byName[fn.Name()]
	}
	return []*types.Func{fn.Origin()}
}

// ownResult is what a function of ours returns, with the arguments put in for its parameters.
func (f *flow) ownResult(x *ast.CallExpr, bodies []*types.Func) (got fact) {
	for _, fn := range bodies {
		held := f.held[fn]
		got = got.or(fact{why: held.why, near: held.near})
		params := fn.Signature().Params()
		for i, arg := range x.Args {
			if params.Len() > 0 && held.params[params.At(min(i, params.Len()-1))] {
				got = got.or(f.expr(arg))
			}
		}
	}
	return got
}

// callee is the function or method that a call names; nil for function values and built-in functions.
func (f *flow) callee(x *ast.CallExpr) *types.Func {
	var id *ast.Ident
	switch fun := ast.Unparen(x.Fun).(type) {
	case *ast.Ident:
		id = fun
	case *ast.SelectorExpr:
		id = fun.Sel
	case *ast.IndexExpr:
		id, _ = ast.Unparen(fun.X).(*ast.Ident)
	}
	if id == nil {
		return nil
	}
	fn, _ := f.info.Uses[id].(*types.Func)
	return fn
}
