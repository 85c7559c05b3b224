package cli

import (
	"errors"
	"fmt"
	"io/fs"
	"strings"
	"testing"

	"postern/proxy/client"
	"postern/proxy/fleet"
)

func TestExitCodes(t *testing.T) {
	for _, c := range []struct {
		err  error
		want int
	}{
		{errors.New("x"), 1},
		{usage("wrong"), 2},
		{fmt.Errorf("while: %w", usage("wrong %w", fs.ErrNotExist)), 2},
		{errFailed, 1},
		{fmt.Errorf("while: %w", fleet.ErrUnknownEndpoint), 2},
		{&client.RefusedError{Status: 400}, 2},
		{&client.RefusedError{Status: 404}, 1},
		{&client.RefusedError{Status: 503}, 1},
		{&client.UnreachableError{}, 1},
		{fmt.Errorf("while: %w", &client.ArgumentError{}), 2},
	} {
		if got := exitCode(c.err); got != c.want {
			t.Errorf("%#v has exit code %d, want %d", c.err, got, c.want)
		}
	}
	if !errors.Is(usage("wrong %w", fs.ErrNotExist), fs.ErrNotExist) {
		t.Error("a wrong usage hides its cause")
	}
}

func TestExplain(t *testing.T) {
	for _, c := range []struct {
		err  error
		want string
	}{
		{&client.RefusedError{Status: 401, Title: "No token"}, "--token-file"},
		{&client.RefusedError{Status: 401, Type: "urn:postern:problem:token", Title: "No token"}, "--token-file"},
		{&client.RefusedError{Status: 404, Type: "urn:postern:problem:no-such-endpoint", Title: "No such endpoint", Detail: "GET /api/v1/endpoints"}, "there is no such endpoint\n`postern endpoints` lists"},
		{&client.UnreachableError{Address: "unix:/x", Reason: "there is no such socket"}, "no Postern answers at unix:/x: there is no such socket\nStart one with `postern run`, or point elsewhere with --admin ADDRESS (POSTERN_ADMIN)."},
		{fmt.Errorf("%w\nuse --ingest", &client.UnreachableError{Address: "a", Reason: "r"}), "no Postern answers at a: r\nuse --ingest"},
	} {
		if got := (&session{}).explain(c.err); !strings.Contains(got, c.want) {
			t.Errorf("got %q, want %q in it", got, c.want)
		}
	}
	for _, kind := range []string{"", "urn:postern:problem:forbidden-target", "urn:postern:problem:foreign-page"} {
		if got := (&session{}).explain(&client.RefusedError{Status: 403, Type: kind, Title: "No"}); strings.Contains(got, "token") {
			t.Errorf("a token is named where none helps: %q", got)
		}
	}
	if got := (&session{}).explain(fmt.Errorf("%w\nuse --ingest", &client.UnreachableError{})); strings.Contains(got, "--admin") {
		t.Errorf("two next steps: %q", got)
	}
}
