package configs

import (
	"errors"
	"fmt"
	"io/fs"
	"net"
	"net/netip"
	"strconv"
	"strings"
)

// Listener is an address to listen on, and the token that callers must show there.
type Listener struct {
	// Address is host:port or unix:PATH, as it was written. Port 0 lets the system choose.
	Address string
	// TokenFile is empty where no token is asked for. It may hold several, one per line and newest first, so that a
	// token can be changed without a gap; Token is the first of them. It is a secret.
	TokenFile string
	Token     []byte
	// SocketMode is the mode of a Unix socket's file.
	SocketMode fs.FileMode
	// MaxConnections bounds the connections that are open at once.
	MaxConnections int
}

// Split returns what net.Listen needs.
func (l Listener) Split() (network, address string) {
	if path, ok := strings.CutPrefix(l.Address, "unix:"); ok {
		return "unix", path
	}
	return "tcp", l.Address
}

// Loopback tells whether only this machine can reach the listener: a loopback address, localhost, or a Unix socket.
func (l Listener) Loopback() bool {
	network, address := l.Split()
	if network == "unix" {
		return true
	}
	host, _, err := net.SplitHostPort(address)
	if err != nil {
		return false
	}
	if strings.EqualFold(host, "localhost") {
		return true
	}
	ip, err := netip.ParseAddr(host)
	return err == nil && ip.Unmap().IsLoopback()
}

// collides tells whether two listeners cannot both be opened.
func (l Listener) collides(other Listener) bool {
	network, address := l.Split()
	otherNetwork, otherAddress := other.Split()
	if l.Address == "" || other.Address == "" || network != otherNetwork {
		return false
	}
	if network == "unix" {
		return address == otherAddress
	}
	host, port, err := net.SplitHostPort(address)
	otherHost, otherPort, otherErr := net.SplitHostPort(otherAddress)
	if err != nil || otherErr != nil || port != otherPort || port == "0" {
		return false
	}
	host, otherHost = plainHost(host), plainHost(otherHost)
	return host == otherHost || host == "" || otherHost == ""
}

// reachedBy tells whether a request to host and port arrives at this very listener.
func (l Listener) reachedBy(host, port string) bool {
	network, address := l.Split()
	ownHost, ownPort, err := net.SplitHostPort(address)
	if network != "tcp" || err != nil || port != ownPort {
		return false
	}
	if ownHost = plainHost(ownHost); ownHost != "" {
		return ownHost == plainHost(host)
	}
	return Listener{Address: net.JoinHostPort(host, port)}.Loopback()
}

// plainHost gives the spellings of one host one form; every wildcard is the empty string.
func plainHost(host string) string {
	if strings.EqualFold(host, "localhost") {
		return "127.0.0.1"
	}
	ip, err := netip.ParseAddr(host)
	switch {
	case err != nil:
		return strings.ToLower(host)
	case ip.IsUnspecified():
		return ""
	}
	return ip.Unmap().String()
}

// DefaultSocketMode lets the user that Postern runs as connect to a Unix socket, and nobody else.
const DefaultSocketMode fs.FileMode = 0o600

// parseSocketMode reads a mode as chmod takes it. Execute bits mean nothing for a socket.
func parseSocketMode(text string) (fs.FileMode, error) {
	mode, err := strconv.ParseUint(text, 8, 16)
	switch {
	case err != nil || len(text) < 3 || len(text) > 4:
		return 0, fmt.Errorf("%s is not a file mode; write it as chmod takes it, such as \"0660\"", quote(text))
	case mode&^0o666 != 0:
		return 0, fmt.Errorf("%s has more than read and write in it; write a mode such as \"0600\" (this user), \"0660\" (the group too) or \"0666\" (everybody on this machine)", quote(text))
	case mode&0o600 != 0o600:
		return 0, fmt.Errorf("%s keeps out the user that Postern runs as; write a mode such as \"0600\" or \"0660\"", quote(text))
	}
	return fs.FileMode(mode), nil
}

const listenForms = "write host:port such as 127.0.0.1:8089, or unix:/run/postern.sock"

func parseListen(text string) (string, error) {
	if path, ok := strings.CutPrefix(text, "unix:"); ok {
		return text, checkSocketPath(path)
	}
	host, port, err := net.SplitHostPort(text)
	if err != nil {
		return "", fmt.Errorf("%s is not an address to listen on; %s", quote(text), listenForms)
	}
	if n, err := strconv.ParseUint(port, 10, 16); err != nil || strconv.FormatUint(n, 10) != port {
		return "", fmt.Errorf("the port %s is not a number from 0 to 65535; %s", quote(port), listenForms)
	}
	for i := range len(host) {
		if c := host[i]; c <= ' ' || c >= 0x7f || c == '/' {
			return "", fmt.Errorf("the host %s is not valid; %s", quote(host), listenForms)
		}
	}
	return text, nil
}

func parseListenOrEmpty(text string) (string, error) {
	if text == "" {
		return "", nil
	}
	return parseListen(text)
}

func checkSocketPath(path string) error {
	const longest = 103 // what the smallest sun_path of a Unix holds
	switch {
	case path == "":
		return errors.New("the path of the Unix socket is missing; write unix:/run/postern.sock")
	case len(path) > longest:
		return fmt.Errorf("the path of the Unix socket has %d bytes and the system takes %d; choose a shorter one", len(path), longest)
	case strings.ContainsAny(path, "\x00\n\r"):
		return errors.New("the path of the Unix socket has a control character in it; remove it")
	}
	return nil
}
