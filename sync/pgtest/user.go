package pgtest

import (
	"errors"
	"fmt"
	"os/user"
	"strconv"
	"syscall"
)

// unprivileged finds a user who is not root: Postgres's own, else nobody.
func unprivileged() (*syscall.Credential, error) {
	var errs []error
	for _, name := range []string{"postgres", "nobody"} {
		u, err := user.Lookup(name)
		if err != nil {
			errs = append(errs, err)
			continue
		}
		uid, uerr := strconv.ParseUint(u.Uid, 10, 32)
		gid, gerr := strconv.ParseUint(u.Gid, 10, 32)
		if uerr != nil || gerr != nil {
			errs = append(errs, fmt.Errorf("user %s has no numbers", name))
			continue
		}
		return &syscall.Credential{Uid: uint32(uid), Gid: uint32(gid), NoSetGroups: true}, nil
	}
	return nil, fmt.Errorf("no user was found for Postgres, which does not run as root: %w", errors.Join(errs...))
}
