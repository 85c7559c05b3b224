package egress

import "net/netip"

// carriers are the IPv6 prefixes whose addresses carry IPv4 addresses, and the byte at which each of those begins.
var carriers = []struct {
	prefix  netip.Prefix
	offsets []int
	invert  bool // the last offset's bytes are inverted
}{
	{prefix: netip.MustParsePrefix("64:ff9b::/96"), offsets: []int{12}},               // NAT64 (RFC 6052)
	{prefix: netip.MustParsePrefix("2002::/16"), offsets: []int{2}},                   // 6to4 (RFC 3056)
	{prefix: netip.MustParsePrefix("2001::/32"), offsets: []int{4, 12}, invert: true}, // Teredo (RFC 4380): server, client
	{prefix: netip.MustParsePrefix("::ffff:0:0:0/96"), offsets: []int{12}},            // translated (RFC 2765)
	{prefix: netip.MustParsePrefix("::/96"), offsets: []int{12}},                      // compatible (RFC 4291), deprecated
}

// embedded lists the IPv4 addresses that addr carries. :: and ::1 carry none, although they lie in ::/96.
func embedded(addr netip.Addr) []netip.Addr {
	if addr.IsUnspecified() || addr.IsLoopback() {
		return nil
	}
	bytes := addr.As16()
	var found []netip.Addr
	for _, c := range carriers {
		if !c.prefix.Contains(addr) {
			continue
		}
		for i, at := range c.offsets {
			inner := [4]byte(bytes[at : at+4])
			if c.invert && i == len(c.offsets)-1 {
				for j := range inner {
					inner[j] = ^inner[j]
				}
			}
			found = append(found, netip.AddrFrom4(inner))
		}
	}
	if localNAT64.Contains(addr) {
		found = append(found, localReadings(bytes)...)
	}
	return found
}

// localNAT64 is an operator's own translator (RFC 8215): never public, whatever it embeds.
var localNAT64 = netip.MustParsePrefix("64:ff9b:1::/48")

// localReadings takes the embedded address for a prefix of /96, where it is the last four bytes, and for one of /48,
// where it stands around byte 8, which is left zero (RFC 6052, section 2.2). Which of them is meant only the translator
// knows, so only what must not be reached even in one's own network is taken from either.
func localReadings(b [16]byte) []netip.Addr {
	var found []netip.Addr
	for _, inner := range [][4]byte{{b[12], b[13], b[14], b[15]}, {b[6], b[7], b[9], b[10]}} {
		addr := netip.AddrFrom4(inner)
		switch Classify(addr) {
		case Loopback, LinkLocal, Metadata:
			found = append(found, addr)
		}
	}
	return found
}
