package client

import (
	"fmt"
	"net"
	"net/netip"
	"net/url"
	"strings"
)

// parseAddress turns what a person or a configuration file writes into a base URL and, for a Unix socket, its path.
func parseAddress(address string) (base, socket string, err error) {
	if path, ok := strings.CutPrefix(address, "unix:"); ok {
		path = strings.TrimPrefix(path, "//")
		if path == "" {
			return "", "", fmt.Errorf("the address %q names no socket; write unix:/run/postern.sock", address)
		}
		return "http://localhost", path, nil
	}
	if !strings.Contains(address, "://") {
		address = "http://" + address
	}
	u, err := url.Parse(address)
	if err != nil || u.Host == "" || (u.Scheme != "http" && u.Scheme != "https") || strings.Trim(u.Path, "/") != "" || u.RawQuery != "" || u.User != nil {
		return "", "", fmt.Errorf("the address is not valid; write http://HOST:PORT, HOST:PORT or unix:PATH")
	}
	return u.Scheme + "://" + reachable(u.Host), "", nil
}

// reachable replaces an address that only a listener can use (:8090, 0.0.0.0, [::]) by the loopback one.
func reachable(hostport string) string {
	host, port, err := net.SplitHostPort(hostport)
	if err != nil {
		return hostport // no port: the scheme's own
	}
	if host == "" {
		return net.JoinHostPort("127.0.0.1", port)
	}
	ip, err := netip.ParseAddr(host)
	switch {
	case err != nil || !ip.IsUnspecified():
		return hostport
	case ip.Is4():
		return net.JoinHostPort("127.0.0.1", port)
	default:
		return net.JoinHostPort("::1", port)
	}
}
