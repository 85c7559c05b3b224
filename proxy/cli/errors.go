package cli

import (
	"errors"
	"fmt"
	"net/http"
	"strings"

	"github.com/alecthomas/kong"

	"postern/proxy/client"
	"postern/proxy/fleet"
	"postern/proxy/redact"
)

// exitError gives an error an exit code. Without an error inside, everything was said already.
type exitError struct {
	code int
	err  error
}

func (e *exitError) Error() string {
	if e.err == nil {
		return fmt.Sprintf("exit code %d", e.code)
	}
	return e.err.Error()
}

func (e *exitError) Unwrap() error { return e.err }

// ExitCode is 1 or 2.
func (e *exitError) ExitCode() int { return e.code }

// usage is an error in what was typed or configured.
func usage(format string, args ...any) error {
	return &exitError{code: exitUsage, err: fmt.Errorf(format, args...)}
}

// failed ends with exit code 1 and says nothing more.
var errFailed = &exitError{code: exitFailed}

// exitCode finds the code that an error carries. app's errors carry one too, which is why this asks for a method.
func exitCode(err error) int {
	if _, ok := errors.AsType[*kong.ParseError](err); ok {
		return exitUsage
	}
	if _, ok := errors.AsType[*client.ArgumentError](err); ok {
		return exitUsage
	}
	// A name that nobody has reported was mistyped, or is too new to ask about.
	if errors.Is(err, fleet.ErrUnknownEndpoint) {
		return exitUsage
	}
	// Postern judges filters and cursors; what it does not understand was typed wrong.
	if refused, ok := errors.AsType[*client.RefusedError](err); ok && refused.Status == http.StatusBadRequest {
		return exitUsage
	}
	var coded interface{ ExitCode() int }
	if errors.As(err, &coded) {
		return coded.ExitCode()
	}
	return exitFailed
}

// typeToken is the kind of refusal that a token helps against. Others with 401 or 403, such as a target that is not
// allowed, say themselves what to do.
const typeToken = "urn:postern:problem:token"

// typeNoEndpoint is the API's refusal of a name; what it advises is the API's way of asking.
const typeNoEndpoint = "urn:postern:problem:no-such-endpoint"

// explain adds the next step where the error alone does not name it.
func (s *session) explain(err error) string {
	text := redact.Error(err)
	if refused, ok := errors.AsType[*client.RefusedError](err); ok {
		if refused.Type == typeNoEndpoint {
			return "there is no such endpoint\n`postern endpoints` lists those that are configured or have events; the name of an ad hoc one is its origin, such as https://partner.example."
		}
		asked := refused.Type == typeToken || refused.Type == "" && refused.Status == http.StatusUnauthorized
		if asked {
			text += "\nIf that listener has a token_file, name a readable copy of it with --token-file."
		}
		return text
	}
	if _, ok := asUnreachable(err); ok {
		if !strings.Contains(text, "\n") {
			text += "\nStart one with `postern run`, or point elsewhere with --admin ADDRESS (POSTERN_ADMIN)."
		}
		text += s.forgotten()
	}
	return text
}

// asUnreachable finds out whether nobody answered.
func asUnreachable(err error) (*client.UnreachableError, bool) {
	return errors.AsType[*client.UnreachableError](err)
}
