package egress

import (
	"net/netip"
	"slices"
	"strings"
)

// Policy says which addresses may be reached. The zero Policy is that of ad hoc targets: public addresses only.
type Policy struct {
	// AllowPrivate lets through what is local but ordinary: loopback, private, unique-local, carrier-grade NAT, reserved.
	AllowPrivate bool
	// AllowNets are networks let through. Of what is refused even to those who may reach local addresses they let through
	// only what they were made for: of link-local addresses, say, a network in which there is nothing else, and a metadata
	// service where it is named by its address. Whoever allows 0.0.0.0/0 means their own network, not those.
	AllowNets []netip.Prefix
	// AllowHosts are host names whose addresses may be local: exact ones, and "*.partner.example" for everything below
	// partner.example. Case and a trailing dot make no difference.
	AllowHosts []string
	// OwnOrigin marks a named endpoint's transport: the operator wrote its address down, so that it may be local.
	OwnOrigin bool
}

// Check returns a *BlockedError if addr may not be reached. Link-local, metadata, multicast, broadcast and unspecified
// addresses are refused unless AllowNets has them.
func (p Policy) Check(addr netip.Addr) error {
	class := Classify(addr)
	switch class {
	case Public:
		return nil
	case Loopback, Private, UniqueLocal, CGNAT, Reserved:
		if p.AllowPrivate || p.OwnOrigin {
			return nil
		}
	}
	if p.allowsNet(addr, class) {
		return nil
	}
	return &BlockedError{Class: class}
}

func (p Policy) allowsNet(addr netip.Addr, class Class) bool {
	addr = addr.Unmap().WithZone("")
	return slices.ContainsFunc(p.AllowNets, func(net netip.Prefix) bool { return net.Contains(addr) && meant(net, class) })
}

// meant tells that a network was written down for the sake of addresses of this class.
func meant(net netip.Prefix, class Class) bool {
	switch class {
	case Loopback, Private, UniqueLocal, CGNAT, Reserved:
		return true
	case Metadata:
		return net.IsSingleIP()
	}
	return Classify(net.Masked().Addr()) == class && Classify(last(net)) == class
}

// last is a network's highest address.
func last(net netip.Prefix) netip.Addr {
	b := net.Masked().Addr().AsSlice()
	for bit := net.Bits(); bit < len(b)*8; bit++ {
		b[bit/8] |= 0x80 >> (bit % 8)
	}
	addr, _ := netip.AddrFromSlice(b)
	return addr
}

// For is the policy that holds for a host: one that AllowHosts names may have local addresses.
func (p Policy) For(host string) Policy {
	p.OwnOrigin = p.OwnOrigin || p.allowsHost(canonical(host))
	return p
}

func (p Policy) allowsHost(host string) bool {
	for _, pattern := range p.AllowHosts {
		pattern = canonical(pattern)
		if suffix, wild := strings.CutPrefix(pattern, "*"); wild {
			if strings.HasPrefix(suffix, ".") && len(host) > len(suffix) && strings.HasSuffix(host, suffix) {
				return true
			}
		} else if host == pattern {
			return true
		}
	}
	return false
}

// canonical is a host name as it is compared: lower case, without the root's dot.
func canonical(host string) string {
	return strings.TrimSuffix(strings.ToLower(host), ".")
}

// ParseAllow sorts the entries of targets.allow into networks, single addresses among them, and host names.
func ParseAllow(entries []string) (nets []netip.Prefix, hosts []string) {
	for _, entry := range entries {
		if prefix, err := netip.ParsePrefix(entry); err == nil {
			nets = append(nets, prefix.Masked())
		} else if addr, err := netip.ParseAddr(strings.Trim(entry, "[]")); err == nil {
			addr = addr.Unmap().WithZone("")
			nets = append(nets, netip.PrefixFrom(addr, addr.BitLen()))
		} else {
			hosts = append(hosts, entry)
		}
	}
	return nets, hosts
}
