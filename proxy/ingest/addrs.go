package ingest

import (
	"net"
	"net/netip"
	"strings"

	"postern/proxy/target"
)

// addrs are addresses of our own listeners: for each port, the hosts that lead there.
type addrs map[string][]string

// loopbacks are what a client may call this machine by. Connecting to an unspecified address reaches it too.
var loopbacks = []string{"localhost", "127.0.0.1", "::1", "0.0.0.0", "::"}

func newAddrs(list []string) addrs {
	a := addrs{}
	for _, addr := range list {
		host, port, err := net.SplitHostPort(addr)
		if err != nil || port == "" {
			continue // a Unix socket has no address that a target could name
		}
		host = hostKey(host)
		hosts := append(a[port], host)
		ip, err := netip.ParseAddr(host)
		if host == "" || host == "localhost" || err == nil && (ip.IsUnspecified() || host == "127.0.0.1" || host == "::1") {
			hosts = append(hosts, loopbacks...)
		}
		a[port] = hosts
	}
	return a
}

// has tells whether a target is one of the addresses.
func (a addrs) has(t target.Target) bool {
	hosts := a[t.Port()]
	if hosts == nil {
		return false
	}
	key := hostKey(t.Hostname())
	for _, host := range hosts {
		if host == key {
			return true
		}
	}
	return false
}

// hostKey brings a host into one form; an IPv4 address mapped into IPv6 is the IPv4 address.
func hostKey(host string) string {
	host = strings.ToLower(strings.TrimSuffix(host, "."))
	if ip, err := netip.ParseAddr(host); err == nil {
		return ip.Unmap().String()
	}
	return host
}
