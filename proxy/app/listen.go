package app

import (
	"errors"
	"fmt"
	"net"
	"os"
	"syscall"

	"postern/configs"
)

// listen opens a listener, or says which address it was and how to use another.
func listen(what, key string, l configs.Listener) (net.Listener, error) {
	network, address := l.Split()
	if network == "unix" {
		if err := removeStaleSocket(address); err != nil {
			return nil, err
		}
	}
	ln, err := net.Listen(network, address)
	if errors.Is(err, syscall.EADDRINUSE) {
		return nil, fmt.Errorf("the %s address %s is in use by another process: stop that one, or set `%s` (%s) to another address",
			what, l.Address, key, flagOf(key))
	}
	if err != nil {
		return nil, fmt.Errorf("listening on the %s address %s (`%s`): %w", what, l.Address, key, err)
	}
	if network == "unix" {
		if err := os.Chmod(address, 0o600); err != nil {
			return nil, errors.Join(err, ln.Close())
		}
	}
	return ln, nil
}

func flagOf(key string) string {
	switch key {
	case "listen":
		return "or --listen"
	case "admin.listen":
		return "or --admin-listen"
	}
	return "in the configuration file"
}

// removeStaleSocket removes a socket that nobody listens on: a kill leaves it behind.
func removeStaleSocket(path string) error {
	info, err := os.Stat(path)
	if err != nil || info.Mode().Type() != os.ModeSocket {
		return nil // nothing there, or something that is not ours to remove: net.Listen will say so
	}
	if c, err := net.Dial("unix", path); err == nil {
		c.Close()
		return fmt.Errorf("the socket %s is in use by another process", path)
	}
	return os.Remove(path)
}

// addressOf is how a listener is shown: what was configured for a socket, what the system chose for a port.
func addressOf(ln net.Listener) string {
	if ln == nil {
		return ""
	}
	if ln.Addr().Network() == "unix" {
		return "unix:" + ln.Addr().String()
	}
	return ln.Addr().String()
}
