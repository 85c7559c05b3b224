package egress

import (
	"net/netip"
	"strconv"
	"strings"

	"postern/proxy/target"
)

// CheckTarget judges what can be judged of a target without resolving: see CheckLiteral.
func (p Policy) CheckTarget(t target.Target) error { return p.CheckLiteral(t.Hostname()) }

// CheckLiteral judges a host, without brackets or port, that is an address in any spelling which some resolver or proxy
// takes for one: dotted, IPv6, with a zone, and the old forms of inet_aton (2130706433, 0x7f.1, 0177.0.0.1, 127.1). A name
// passes, localhost too: what it resolves to is judged when it is dialled.
func (p Policy) CheckLiteral(host string) error {
	host = canonical(host)
	p = p.For(host)
	if host == "metadata.google.internal" {
		return &BlockedError{Class: Metadata}
	}
	for _, addr := range spellings(host) {
		if err := p.Check(addr); err != nil {
			return err
		}
	}
	return nil
}

// spellings are the addresses that a host may be taken for; none for a name. A part with a leading zero is octal to
// some readers and decimal to others, so both readings count.
func spellings(host string) []netip.Addr {
	if addr, err := netip.ParseAddr(host); err == nil {
		return []netip.Addr{addr}
	}
	var found []netip.Addr
	for _, octal := range []bool{true, false} {
		if addr, ok := parseAton(host, octal); ok {
			found = append(found, addr)
		}
	}
	return found
}

// parseAton reads what inet_aton(3) reads: one to four numbers, the last of which fills all the bytes that are left.
func parseAton(host string, octal bool) (netip.Addr, bool) {
	parts := strings.Split(host, ".")
	if len(parts) > 4 {
		return netip.Addr{}, false
	}
	var sum uint64
	for i, part := range parts {
		bits := 8
		if i == len(parts)-1 {
			bits = 8 * (5 - len(parts))
		}
		n, err := parsePart(part, octal)
		if err != nil || n >= 1<<bits {
			return netip.Addr{}, false
		}
		sum = sum<<bits | n
	}
	return netip.AddrFrom4([4]byte{byte(sum >> 24), byte(sum >> 16), byte(sum >> 8), byte(sum)}), true
}

func parsePart(part string, octal bool) (uint64, error) {
	if hex, ok := strings.CutPrefix(part, "0x"); ok {
		if hex == "" { // a bare 0x is zero to glibc
			return 0, nil
		}
		return strconv.ParseUint(hex, 16, 64)
	}
	if octal && len(part) > 1 && part[0] == '0' {
		return strconv.ParseUint(part, 8, 64)
	}
	return strconv.ParseUint(part, 10, 64)
}
