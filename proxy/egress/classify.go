package egress

import "net/netip"

// Class is what kind of place an address is. Only Public is open to everybody.
type Class uint8

// The classes, from harmless to most dangerous: of two that apply to one address, the later one counts.
const (
	Public      Class = iota // globally reachable unicast
	Reserved                 // documentation, benchmarking, unassigned and the like
	Private                  // RFC 1918, and the deprecated site-local and the local NAT64 prefix
	UniqueLocal              // fc00::/7 (RFC 4193)
	CGNAT                    // 100.64.0.0/10 (RFC 6598)
	Loopback                 // the machine itself
	Unspecified              // 0.0.0.0 and ::, which connect to the machine itself
	Broadcast                // 255.255.255.255
	Multicast                // 224.0.0.0/4 and ff00::/8
	LinkLocal                // 169.254.0.0/16 and fe80::/10
	Metadata                 // a cloud's metadata or credentials service
	Invalid                  // not an address at all
)

var classNames = [...]string{"public", "reserved", "private", "unique-local", "carrier-grade NAT", "loopback",
	"unspecified", "broadcast", "multicast", "link-local", "cloud metadata", "invalid"}

// String names the class as operators know it.
func (c Class) String() string {
	if int(c) < len(classNames) {
		return classNames[c]
	}
	return "unknown"
}

// metadata lists the addresses at which clouds hand out credentials or instance data.
var metadata = []netip.Addr{
	netip.MustParseAddr("169.254.169.254"), // most clouds
	netip.MustParseAddr("169.254.170.2"),   // container credentials on AWS
	netip.MustParseAddr("169.254.170.23"),  // pod identity on AWS
	netip.MustParseAddr("169.254.42.42"),   // Scaleway
	netip.MustParseAddr("100.100.100.200"), // Alibaba
	netip.MustParseAddr("168.63.129.16"),   // Azure's host, a public address
	netip.MustParseAddr("192.0.0.192"),     // Oracle
	netip.MustParseAddr("fd00:ec2::254"),   // AWS
	netip.MustParseAddr("fd00:ec2::23"),    // pod identity on AWS
	netip.MustParseAddr("fd20:ce::254"),    // Google
	netip.MustParseAddr("fd00:42::42"),     // Scaleway
}

type block struct {
	prefix netip.Prefix
	class  Class
}

// blocks4 and blocks6 follow the IANA special-purpose address registries (RFC 6890 and successors).
var blocks4 = []block{
	{netip.MustParsePrefix("0.0.0.0/32"), Unspecified},
	{netip.MustParsePrefix("0.0.0.0/8"), Reserved},
	{netip.MustParsePrefix("10.0.0.0/8"), Private},
	{netip.MustParsePrefix("100.64.0.0/10"), CGNAT},
	{netip.MustParsePrefix("127.0.0.0/8"), Loopback},
	{netip.MustParsePrefix("169.254.0.0/16"), LinkLocal},
	{netip.MustParsePrefix("172.16.0.0/12"), Private},
	{netip.MustParsePrefix("192.0.0.0/24"), Reserved},
	{netip.MustParsePrefix("192.0.2.0/24"), Reserved},
	{netip.MustParsePrefix("192.88.99.0/24"), Reserved},
	{netip.MustParsePrefix("192.168.0.0/16"), Private},
	{netip.MustParsePrefix("198.18.0.0/15"), Reserved},
	{netip.MustParsePrefix("198.51.100.0/24"), Reserved},
	{netip.MustParsePrefix("203.0.113.0/24"), Reserved},
	{netip.MustParsePrefix("224.0.0.0/4"), Multicast},
	{netip.MustParsePrefix("255.255.255.255/32"), Broadcast},
	{netip.MustParsePrefix("240.0.0.0/4"), Reserved},
}

var blocks6 = []block{
	{netip.MustParsePrefix("::/128"), Unspecified},
	{netip.MustParsePrefix("::1/128"), Loopback},
	{netip.MustParsePrefix("fc00::/7"), UniqueLocal},
	{netip.MustParsePrefix("fe80::/10"), LinkLocal},
	{netip.MustParsePrefix("fec0::/10"), Private},
	{netip.MustParsePrefix("ff00::/8"), Multicast},
	{localNAT64, Private},
	{netip.MustParsePrefix("64:ff9b::/96"), Public}, // as public as what it embeds
	{netip.MustParsePrefix("2001::/32"), Public},    // Teredo, likewise
	{netip.MustParsePrefix("2001::/23"), Reserved},
	{netip.MustParsePrefix("2001:db8::/32"), Reserved},
	{netip.MustParsePrefix("3fff::/20"), Reserved},
	{netip.MustParsePrefix("2000::/3"), Public}, // the only part that is assigned for global unicast
	{netip.MustParsePrefix("::/0"), Reserved},
}

// Classify tells what kind of place addr is. Forms of IPv6 that carry an IPv4 address are what the carried address is,
// if that is the more dangerous of the two. A zone makes no difference.
func Classify(addr netip.Addr) Class {
	if !addr.IsValid() {
		return Invalid
	}
	addr = addr.WithZone("")
	if addr.Is4In6() { // ::ffff:0:0/96 is IPv4 for the socket
		addr = addr.Unmap()
	}
	for _, m := range metadata {
		if addr == m {
			return Metadata
		}
	}
	if addr.Is4() {
		return lookup(blocks4, addr)
	}
	class := lookup(blocks6, addr)
	for _, inner := range embedded(addr) {
		class = max(class, Classify(inner))
	}
	return class
}

func lookup(blocks []block, addr netip.Addr) Class {
	for _, b := range blocks {
		if b.prefix.Contains(addr) {
			return b.class
		}
	}
	return Public
}
