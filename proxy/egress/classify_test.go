package egress_test

import (
	"net/netip"
	"testing"

	"pgregory.net/rapid"

	"postern/proxy/egress"
)

func TestClassify(t *testing.T) {
	for _, c := range []struct {
		addr string
		want egress.Class
	}{
		{"8.8.8.8", egress.Public},
		{"9.255.255.255", egress.Public},
		{"11.0.0.0", egress.Public},
		{"100.63.255.255", egress.Public},
		{"100.128.0.0", egress.Public},
		{"172.15.255.255", egress.Public},
		{"172.32.0.0", egress.Public},
		{"126.255.255.255", egress.Public},
		{"128.0.0.0", egress.Public},
		{"223.255.255.255", egress.Public},
		{"0.0.0.0", egress.Unspecified},
		{"0.0.0.1", egress.Reserved},
		{"10.0.0.1", egress.Private},
		{"172.16.0.1", egress.Private},
		{"172.31.255.255", egress.Private},
		{"192.168.1.1", egress.Private},
		{"100.64.0.1", egress.CGNAT},
		{"100.127.255.255", egress.CGNAT},
		{"127.0.0.1", egress.Loopback},
		{"127.255.255.254", egress.Loopback},
		{"169.254.1.1", egress.LinkLocal},
		{"192.0.0.1", egress.Reserved},
		{"192.0.2.1", egress.Reserved},
		{"198.18.0.1", egress.Reserved},
		{"198.19.255.255", egress.Reserved},
		{"198.51.100.9", egress.Reserved},
		{"203.0.113.5", egress.Reserved},
		{"240.0.0.1", egress.Reserved},
		{"224.0.0.1", egress.Multicast},
		{"239.255.255.250", egress.Multicast},
		{"255.255.255.255", egress.Broadcast},
		{"169.254.169.254", egress.Metadata},
		{"169.254.170.2", egress.Metadata},
		{"100.100.100.200", egress.Metadata},
		{"168.63.129.16", egress.Metadata},
		{"192.0.0.192", egress.Metadata},
		{"fd00:ec2::254", egress.Metadata},

		{"2606:4700:4700::1111", egress.Public},
		{"::", egress.Unspecified},
		{"::1", egress.Loopback},
		{"fc00::1", egress.UniqueLocal},
		{"fdff::1", egress.UniqueLocal},
		{"fe80::1", egress.LinkLocal},
		{"fe80::1%eth0", egress.LinkLocal},
		{"febf::1", egress.LinkLocal},
		{"fec0::1", egress.Private},
		{"ff02::1", egress.Multicast},
		{"100::1", egress.Reserved},
		{"2001:db8::1", egress.Reserved},
		{"2001:2::1", egress.Reserved},
		{"2001:20::1", egress.Reserved},
		{"3fff::1", egress.Reserved},
		{"4000::1", egress.Reserved},
		{"5f00::1", egress.Reserved},
		{"::ffff:8.8.8.8", egress.Public},
		{"::ffff:127.0.0.1", egress.Loopback},
		{"::ffff:10.0.0.1", egress.Private},
		{"::ffff:169.254.169.254", egress.Metadata},
		{"64:ff9b::8.8.8.8", egress.Public},
		{"64:ff9b::10.0.0.1", egress.Private},
		{"64:ff9b::127.0.0.1", egress.Loopback},
		{"64:ff9b::169.254.169.254", egress.Metadata},
		{"64:ff9b:1::8.8.8.8", egress.Private},
		{"64:ff9b:1::127.0.0.1", egress.Loopback},
		{"64:ff9b:1:a9fe:a9:fe00::", egress.Metadata}, // 169.254.169.254 around byte 8
		{"64:ff9b:1:808:8:800::", egress.Private},
		{"2002:808:808::1", egress.Public},
		{"2002:7f00:1::1", egress.Loopback},
		{"2002:a00:1::", egress.Private},
		{"2002:a9fe:a9fe::", egress.Metadata},
		{"2001:0:808:808::f7f7:f7f7", egress.Public},     // Teredo, server and client 8.8.8.8
		{"2001:0:808:808::80ff:fffe", egress.Loopback},   // client 127.0.0.1, inverted
		{"2001:0:a00:1::f7f7:f7f7", egress.Private},      // server 10.0.0.1
		{"::127.0.0.1", egress.Loopback},                 // compatible form
		{"::8.8.8.8", egress.Reserved},                   // deprecated, so not public
		{"::ffff:0:127.0.0.1", egress.Loopback},          // translated form
		{"::ffff:0:169.254.169.254", egress.Metadata},    //
		{"2001:0:a9fe:a9fe::f7f7:f7f7", egress.Metadata}, //
	} {
		if got := egress.Classify(netip.MustParseAddr(c.addr)); got != c.want {
			t.Errorf("%s: %v, want %v", c.addr, got, c.want)
		}
	}
	if got := egress.Classify(netip.Addr{}); got != egress.Invalid {
		t.Errorf("no address: %v", got)
	}
}

// TestNoDisguiseHelps: whatever form an IPv4 address is carried in, it is never more open than itself.
func TestNoDisguiseHelps(t *testing.T) {
	prefixes := []string{"::ffff:0:0", "64:ff9b::", "::ffff:0:0:0"}
	rapid.Check(t, func(t *rapid.T) {
		inner := [4]byte(rapid.SliceOfN(rapid.Byte(), 4, 4).Draw(t, "inner"))
		want := egress.Classify(netip.AddrFrom4(inner))
		outer := netip.MustParseAddr(rapid.SampledFrom(prefixes).Draw(t, "prefix")).As16()
		copy(outer[12:], inner[:])
		sixToFour := [16]byte{0x20, 0x02, inner[0], inner[1], inner[2], inner[3]}
		for _, b := range [][16]byte{outer, sixToFour} {
			if got := egress.Classify(netip.AddrFrom16(b)); got < want {
				t.Fatalf("%v is %v, but the %v in it is %v", netip.AddrFrom16(b), got, netip.AddrFrom4(inner), want)
			}
		}
	})
}
