package server

import (
	"context"
	"errors"
	"fmt"
	"io/fs"
	"net"
	"net/netip"
	"os"
	"syscall"
	"time"
)

// Errors of opening a listener.
var (
	// ErrInUse means that another process listens there.
	ErrInUse = errors.New("the address is in use by another process")
	// ErrNotSocket means that there is a file at the path that is no socket. It is not ours to remove.
	ErrNotSocket = errors.New("there is a file that is no socket; remove it, or choose another path")
)

// DefaultSocketMode lets the process's own user connect and nobody else.
const DefaultSocketMode fs.FileMode = 0o600

// Listen opens a listener; network is tcp or unix, and mode is that of a Unix socket's file, whose write permission is
// what lets somebody connect. The socket of a process that is dead is replaced; closing the listener removes its own.
func Listen(network, address string, mode fs.FileMode) (net.Listener, error) {
	if network == "unix" {
		return listenUnix(address, mode)
	}
	ln, err := net.Listen(family(network, address), address)
	if errors.Is(err, syscall.EADDRINUSE) {
		return nil, ErrInUse
	}
	return ln, err
}

// family keeps 0.0.0.0 to IPv4, as its form says: Go would open it for IPv6 as well.
func family(network, address string) string {
	if host, err := netip.ParseAddrPort(address); err == nil && network == "tcp" && host.Addr().Is4() {
		return "tcp4"
	}
	return network
}

func listenUnix(path string, mode fs.FileMode) (net.Listener, error) {
	if err := removeStale(path); err != nil {
		return nil, err
	}
	// bind makes the file with what the umask leaves of 0777. Nobody else may connect before it has its mode. Files that
	// another goroutine makes meanwhile lose nothing: all of ours are for our user alone.
	before := syscall.Umask(0o077)
	ln, err := net.Listen("unix", path)
	syscall.Umask(before)
	if errors.Is(err, syscall.EADDRINUSE) {
		return nil, ErrInUse // by somebody who was quicker
	}
	if err != nil {
		return nil, err
	}
	unix := ln.(*net.UnixListener)
	unix.SetUnlinkOnClose(false)
	err = os.Chmod(path, mode)
	info, statErr := os.Lstat(path)
	if err = errors.Join(err, statErr); err != nil {
		return nil, errors.Join(err, ln.Close(), os.Remove(path))
	}
	return &unixListener{UnixListener: unix, path: path, made: info}, nil
}

// removeStale removes a socket that nobody listens on: a kill leaves it behind.
func removeStale(path string) error {
	info, err := os.Lstat(path)
	switch {
	case errors.Is(err, fs.ErrNotExist):
		return nil
	case err != nil:
		return err
	case info.Mode().Type() != fs.ModeSocket:
		return ErrNotSocket
	}
	ctx, cancel := context.WithTimeout(context.Background(), time.Second)
	defer cancel()
	c, err := new(net.Dialer).DialContext(ctx, "unix", path)
	if err == nil {
		c.Close()
		return ErrInUse
	}
	if errors.Is(err, syscall.ECONNREFUSED) {
		return os.Remove(path)
	}
	// Whoever does not answer in time, or may not be asked by us, is not dead for that.
	return fmt.Errorf("%w, as far as can be told (%w); if it is not, remove the file", ErrInUse, err)
}

// unixListener removes its file when it is closed, unless somebody else's is there by now.
type unixListener struct {
	*net.UnixListener
	path string
	made fs.FileInfo
}

// Close removes the file first, so that nobody connects to a socket that is about to be deaf.
func (l *unixListener) Close() error {
	if now, err := os.Lstat(l.path); err == nil && os.SameFile(now, l.made) && now.ModTime().Equal(l.made.ModTime()) {
		os.Remove(l.path)
	}
	return l.UnixListener.Close()
}
