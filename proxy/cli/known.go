package cli

import (
	"cmp"
	"context"
	"errors"
	"fmt"
	"strings"

	"postern/proxy/cli/term"
	"postern/proxy/client"
)

// unknownEndpoint tells, after nothing was found for an endpoint, that there is none of that name at all, and which one
// may have been meant. It is nil where no name was given, where there is one, and where that cannot be found out.
func unknownEndpoint(ctx context.Context, admin *client.Admin, name string) error {
	if name == "" {
		return nil
	}
	reply, err := admin.Endpoints(ctx)
	if err != nil {
		return nil
	}
	names := make([]string, 0, len(reply.Value.Endpoints))
	for _, e := range reply.Value.Endpoints {
		if e.Name == name {
			return nil
		}
		names = append(names, e.Name)
	}
	text := fmt.Sprintf("there is no endpoint %q", term.Clean(name))
	if near := nearest(name, names); near != "" {
		return fmt.Errorf("%s; did you mean %q?", text, term.Clean(near))
	}
	return errors.New(text + "; `postern endpoints` lists those that are configured or have events")
}

// mistyped is unknownEndpoint for a call that acts, and would have to fail. An ad hoc endpoint of which nothing is left is
// forgotten after a while: to have nothing to do for it is no failure.
func mistyped(ctx context.Context, admin *client.Admin, name string) error {
	if strings.Contains(name, "://") {
		return nil
	}
	return unknownEndpoint(ctx, admin, name)
}

// meant adds to a refusal of an endpoint's name which one may have been meant.
func meant(admin *client.Admin, name string, err error) error {
	if refused, ok := errors.AsType[*client.RefusedError](err); !ok || refused.Type != typeNoEndpoint {
		return err
	}
	return cmp.Or(unknownEndpoint(context.Background(), admin, name), err)
}

// noteUnknown says on standard error why a list is empty.
func (s *session) noteUnknown(admin *client.Admin, name string, found int) {
	if found > 0 {
		return
	}
	if err := unknownEndpoint(context.Background(), admin, name); err != nil {
		s.hint("%v", err)
	}
}
