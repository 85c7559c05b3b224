package redact

import (
	"bytes"
	"log"
	"log/slog"
	"net/http"
	"net/url"
	"strings"
)

// Attr is slog.HandlerOptions.ReplaceAttr of every log that Postern writes. Numbers, times and durations pass, texts
// lose what Text hides, errors show as Error does, and any other value shows its type alone, so that no struct, header
// or body gets into a log because somebody logged it.
func Attr(_ []string, a slog.Attr) slog.Attr {
	switch a.Value.Kind() {
	case slog.KindString:
		a.Value = slog.StringValue(Text(a.Value.String()))
	case slog.KindAny:
		a.Value = value(a.Value.Any())
	}
	return a
}

func value(v any) slog.Value {
	switch v := v.(type) {
	case nil, slog.Level:
		return slog.AnyValue(v)
	case error:
		return slog.StringValue(Error(v))
	case []string:
		texts := make([]string, len(v))
		for i, s := range v {
			texts[i] = Text(s)
		}
		return slog.AnyValue(texts)
	case *url.URL:
		return slog.StringValue(URL(v))
	case http.Header:
		return slog.StringValue(Header(v))
	}
	return slog.StringValue("(" + typeName(v) + ")")
}

// ServerLog is the ErrorLog of a listener's http.Server: it passes on what an operator can act upon. The rest of
// net/http's lines are about single requests (a semicolon in a query, a header that cannot be read), and some repeat
// them. listener is the word for it in texts: ingest or admin.
func ServerLog(logger *slog.Logger, listener string) *log.Logger {
	return log.New(serverLog{logger, listener}, "", 0)
}

type serverLog struct {
	logger   *slog.Logger
	listener string
}

// Write gets one message of net/http.
func (l serverLog) Write(line []byte) (int, error) {
	first, stack, _ := bytes.Cut(bytes.TrimSuffix(line, []byte("\n")), []byte("\n"))
	switch text := string(first); {
	case strings.HasPrefix(text, "http: Accept error"):
		l.logger.Warn("The listener cannot take connections; if files are too many, raise the limit (ulimit -n).",
			"listener", l.listener, "error", text)
	case strings.HasPrefix(text, "http: panic serving"):
		// The first line has the panic's value, which may hold anything. The stack has places alone.
		l.logger.Error("A fault in Postern ended a request; please report it with this stack.", "listener", l.listener, "stack", string(stack))
	}
	return len(line), nil
}
