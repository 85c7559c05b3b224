package redact_test

import (
	"go/types"
	"strings"
)

// telling are names, in lower case, of texts that hold what must not show.
var telling = set("url", "rawurl", "target", "query", "rawquery", "pathquery", "opaque", "body", "value", "user", "username", "password",
	"location", "dsn", "secret", "secrets", "token", "tokens", "requesturi", "fragment", "payload", "cookie", "authorization", "outboundproxy")

// secretTypes are types whose parts and methods give such texts.
var secretTypes = set("net/url.URL", "net/url.Userinfo", "net/url.Values", "net/http.Header", "net/http.Request", "net/http.Response",
	"net/http.Cookie", "net/textproto.MIMEHeader", "postern/proxy/target.Target")

// wholes are types that hold such texts beside others: not to be shown whole.
var wholes = set("postern/spool.Header", "postern/spool.Event", "postern/spool.View", "postern/spool.Lease", "postern/spool.Answer",
	"postern/spool.OutboxRow", "postern/configs.Config", "postern/configs.Endpoint", "postern/proxy/delivery.Job", "postern/proxy/delivery.Response")

// harmlessMembers are the exceptions to both, each with its reason.
var harmlessMembers = set(
	// Origins, which name ad hoc endpoints everywhere.
	"net/url.URL.Scheme", "net/url.URL.Host", "net/url.URL.Hostname", "net/url.URL.Port",
	"postern/proxy/target.Target.Scheme", "postern/proxy/target.Target.Host", "postern/proxy/target.Target.Hostname",
	"postern/proxy/target.Target.Port", "postern/proxy/target.Target.Origin",
	// A configured url without its query: the operator wrote it, and dashboards show it.
	"postern/proxy/target.Target.WithoutQuery", "postern/proxy/admin.Policy.URL", "postern/proxy/admin.EndpointView.URL", "postern/sync/syncer.Endpoint.URL",
	// The event's ID, by which people ask for it; the application chose it for that.
	"postern/spool.Event.ID", "postern/spool.View.ID", "postern/spool.OutboxRow.EventID", "postern/spool.RefusedRow.EventID",
	// Who asked for which event, by which call.
	"net/http.Request.RemoteAddr", "net/http.Request.Method", "net/http.Request.Pattern", "net/http.Request.PathValue", "net/http.Request.Context",
)

// harmless tells whether a value of this type can hold no secret: a number, a time, a log attribute that was looked at
// where it was made, or a type whose text is one of a few words.
func harmless(t types.Type) bool {
	switch typeName(t) {
	case "time.Time", "time.Duration", "log/slog.Attr", "log/slog.Level", "log/slog.Value", "context.Context", "net/netip.Addr", "net/netip.Prefix":
		return true
	}
	basic, ok := under(t).(*types.Basic)
	return ok && basic.Info()&types.IsString == 0 && basic.Kind() != types.Invalid && basic.Kind() != types.UntypedNil
}

// byType is what the type alone tells.
func byType(t types.Type) fact {
	switch {
	case t == nil || harmless(t):
		return fact{}
	case isError(t):
		return fact{why: "an error, which redact.Error would clean"}
	case isBytes(t):
		return fact{why: "bytes", near: true}
	}
	if name := typeName(t); wholes[name] || secretTypes[name] && name != "postern/proxy/target.Target" { // whose LogValue is its origin
		return fact{why: "a " + name}
	}
	return fact{}
}

var errorType = types.Universe.Lookup("error").Type().Underlying().(*types.Interface)

func isError(t types.Type) bool {
	return t != nil && t != types.Typ[types.Invalid] && t != types.Typ[types.UntypedNil] && types.Implements(t, errorType)
}

// carries tells whether a value of this type is followed: a text, bytes, or an interface that may hold one. Fields of
// structs are followed one by one.
func carries(t types.Type) bool {
	return isText(t) || types.IsInterface(t) && !isError(t) && under(t).(*types.Interface).Empty() || isList(t)
}

// isList tells whether it is a list of interfaces, such as variadic arguments.
func isList(t types.Type) bool {
	s, ok := under(t).(*types.Slice)
	return ok && types.IsInterface(s.Elem()) && !isError(s.Elem())
}

func isBytes(t types.Type) bool {
	s, ok := under(t).(*types.Slice)
	if !ok {
		return false
	}
	b, ok := under(s.Elem()).(*types.Basic)
	return ok && b.Kind() == types.Byte
}

// isText tells whether a value is a text, bytes, or a list of such.
func isText(t types.Type) bool {
	switch u := under(t).(type) {
	case *types.Basic:
		return u.Info()&types.IsString != 0
	case *types.Slice:
		return isBytes(t) || isText(u.Elem())
	case *types.Pointer:
		return isText(u.Elem())
	case *types.Map:
		return isText(u.Elem())
	}
	return false
}

func under(t types.Type) types.Type {
	if t == nil {
		return types.Typ[types.Invalid]
	}
	return t.Underlying()
}

// typeName is a named type's import path and name, behind pointers and in lists; empty for other types.
func typeName(t types.Type) string {
	for range 4 {
		switch u := types.Unalias(t).(type) {
		case *types.Pointer:
			t = u.Elem()
		case *types.Slice:
			t = u.Elem()
		case *types.Named:
			if u.Obj().Pkg() == nil {
				return u.Obj().Name()
			}
			return u.Obj().Pkg().Path() + "." + u.Obj().Name()
		default:
			return ""
		}
	}
	return ""
}

// cleaner tells whether a function's result is clean whatever goes in.
func cleaner(fn *types.Func) bool {
	if fn.Pkg() == nil {
		return false
	}
	return fn.Pkg().Path() == "postern/proxy/redact" || fn.FullName() == "runtime/debug.Stack"
}

func set(names ...string) map[string]bool {
	m := make(map[string]bool, len(names))
	for _, name := range names {
		m[strings.TrimSpace(name)] = true
	}
	return m
}
