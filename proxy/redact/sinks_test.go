package redact_test

import (
	"fmt"
	"go/ast"
	"go/types"
	"strconv"
	"strings"
)

// door is a way out for texts: what it is, and the line where they leave.
type door struct{ name, at string }

// shownField tells which fields are doors that texts leave by: problem documents, rows of Postgres, what the API
// lists. field is a type's name and the field's.
func shownField(field string) (name string, ok bool) {
	end := strings.LastIndexByte(field, '.')
	switch owner, field := field[:end], field[end+1:]; owner {
	case "postern/proxy/problem.Problem":
		return "a problem document", field == "Detail" || field == "Title"
	case "postern/sync/pgstore.Row", "postern/sync/pgstore.Attempt", "postern/sync/pgstore.Health", "postern/sync/pgstore.Heartbeat":
		return "a column of Postgres", field != "Payload" // the body, where sync.payloads asks for it
	case "postern/spool.Attempt":
		return "an attempt's error", field == "Error"
	case "postern/proxy/admin.headerJSON", "postern/proxy/admin.answerJSON":
		return "", false // parts of an event that is revealed
	default:
		return "a list of the API", strings.HasPrefix(owner, "postern/proxy/admin.") && strings.HasSuffix(owner, "JSON")
	}
}

// checkField looks at what is put into a field.
func (f *flow) checkField(field string, at ast.Expr, got fact) {
	if name, ok := shownField(field); ok {
		f.show(at, got, door{name, f.line(at)})
	}
}

// show notes that a text leaves by a door.
func (f *flow) show(at ast.Expr, got fact, by door) {
	if f.excused[f.line(at)] {
		return
	}
	if got.why != "" {
		f.found[at.Pos()] = fmt.Sprintf("%s (%s) shows %s: %s", by.name, by.at, types.ExprString(at), got.why)
	}
	for p := range got.params {
		if f.shown[p] == (door{}) {
			f.shown[p] = by
			f.changed = true
		}
	}
}

// excuse is a comment at the end of a line that shows something on purpose, and says what makes that harmless.
const excuse = "// shows: "

func (f *flow) excuses(files []*ast.File) {
	for _, file := range files {
		for _, group := range file.Comments {
			for _, c := range group.List {
				if strings.HasPrefix(c.Text, excuse) {
					f.excused[f.line(c)] = true
				}
			}
		}
	}
}

// line is where a node begins: file and line.
func (f *flow) line(n ast.Node) string {
	p := f.fset.Position(n.Pos())
	return p.Filename + ":" + strconv.Itoa(p.Line)
}

// checkCall looks at what goes into a call that shows it.
func (f *flow) checkCall(x *ast.CallExpr) {
	if id, ok := x.Fun.(*ast.Ident); ok && id.Name == "panic" && f.info.Uses[id] == types.Universe.Lookup("panic") {
		f.checkArg(x.Args[0], door{"a panic", f.line(x)})
		return
	}
	fn := f.callee(x)
	if fn == nil || fn.Pkg() == nil {
		return
	}
	if name := doorOf(fn); name != "" {
		for _, arg := range x.Args {
			f.checkArg(arg, door{name, f.line(x)})
		}
		return
	}
	f.checkParams(x, fn)
}

// checkArg looks at one argument. Errors may be given to the log whole, since redact.Attr cleans them, to other errors,
// which are cleaned together, and to panics: errors that hold a secret are not to be made in the first place.
func (f *flow) checkArg(arg ast.Expr, by door) {
	if isError(f.typeOf(arg)) && (by.name == "the log" || by.name == "an error" || by.name == "a panic") {
		return
	}
	f.show(arg, f.expr(arg), by)
}

// checkParams looks at the arguments whose parameters reach a door inside the called function, or inside any method of
// that name where an interface is called.
func (f *flow) checkParams(x *ast.CallExpr, fn *types.Func) {
	for _, c := range f.bodies(fn) {
		params := c.Signature().Params()
		for i, arg := range x.Args {
			if params.Len() == 0 {
				break
			}
			if by := f.shown[params.At(min(i, params.Len()-1))]; by.name != "" && !harmless(f.typeOf(arg)) {
				f.checkArg(arg, by)
			}
		}
	}
}

// doorOf names the door that a function is; empty where it is none.
func doorOf(fn *types.Func) string {
	name := fn.FullName()
	switch path := fn.Pkg().Path(); {
	case path == "log/slog" && name != "log/slog.New" && !strings.Contains(name, "Handler"):
		return "the log"
	case path == "log" && fn.Name() != "New" && fn.Name() != "SetOutput":
		return "the standard logger"
	case name == "fmt.Errorf" || name == "errors.New":
		return "an error"
	case path == "fmt" && strings.HasPrefix(fn.Name(), "Print"):
		return "standard output"
	case strings.HasPrefix(name, "(*postern/proxy/telemetry.Metrics)."):
		return "a metric"
	}
	return ""
}
