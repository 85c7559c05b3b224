package guard

import (
	"net/netip"
	"strings"
)

// hostSet has the hosts that a listener is reached by, in the form that hostOnly gives.
type hostSet map[string]struct{}

func newHostSet(listen []string) hostSet {
	set := hostSet{"localhost": {}, "127.0.0.1": {}, "::1": {}}
	for _, addr := range listen {
		if literal, err := netip.ParseAddr(addr); err == nil && literal.Is6() {
			addr = "[" + addr + "]" // written without brackets: 2001:db8::1 has no port
		}
		host, ok := hostOnly(addr)
		if literal, err := netip.ParseAddr(host); err == nil && literal.IsUnspecified() {
			continue // nobody is reached by 0.0.0.0, but browsers turn it into localhost
		}
		if ok {
			set[host] = struct{}{}
		}
	}
	return set
}

func (s hostSet) has(hostport string) bool {
	host, ok := hostOnly(hostport)
	if !ok {
		return false
	}
	_, ok = s[host]
	return ok
}

// hostOnly takes the port away and brings a host into one form: lower case, no trailing dot, an IPv6 literal without
// brackets and shortened, an IPv4 address that is mapped into IPv6 as IPv4. ok is false for what is no host at all.
func hostOnly(hostport string) (host string, ok bool) {
	host = hostport
	bracketed := strings.HasPrefix(host, "[")
	if end := strings.LastIndexByte(host, ':'); end > strings.LastIndexByte(host, ']') {
		if !digits(host[end+1:]) {
			return "", false
		}
		host = host[:end]
	}
	if bracketed {
		inner, closed := strings.CutSuffix(host[1:], "]")
		addr, err := netip.ParseAddr(inner)
		if !closed || err != nil || !strings.Contains(inner, ":") {
			return "", false
		}
		return addr.Unmap().String(), true
	}
	host = strings.ToLower(strings.TrimSuffix(host, "."))
	// What is left may hold no byte that would make it something else than a name: user info, a path, a list.
	if host == "" || strings.ContainsAny(host, "@/\\?#%:[], \t") {
		return "", false
	}
	return host, true
}

func digits(s string) bool {
	for i := range len(s) {
		if s[i] < '0' || s[i] > '9' {
			return false
		}
	}
	return true
}
