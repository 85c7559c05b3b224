package egress_test

import (
	"errors"
	"net/netip"
	"strings"
	"testing"

	"postern/proxy/egress"
	"postern/proxy/retry"
	"postern/proxy/target"
)

var (
	adHoc   = egress.Policy{}
	private = egress.Policy{AllowPrivate: true}
	own     = egress.Policy{OwnOrigin: true}
	allowed = allow("10.1.0.0/16", "169.254.7.7", "fd12::/16", "*.partner.example", "Intern.", "[::1]")
)

func allow(entries ...string) egress.Policy {
	nets, hosts := egress.ParseAllow(entries)
	return egress.Policy{AllowNets: nets, AllowHosts: hosts}
}

// TestWideAllowances: a network that has more than link-local addresses opens none of those, and only its own address
// opens a metadata service.
func TestWideAllowances(t *testing.T) {
	for _, c := range []struct {
		entry, addr string
		ok          bool
	}{
		{"0.0.0.0/0", "10.0.0.1", true},
		{"0.0.0.0/0", "169.254.1.1", false},
		{"0.0.0.0/0", "169.254.169.254", false},
		{"0.0.0.0/0", "224.0.0.1", false},
		{"0.0.0.0/0", "255.255.255.255", false},
		{"0.0.0.0/0", "0.0.0.0", false},
		{"::/0", "fd12::1", true},
		{"::/0", "fe80::1", false},
		{"::/0", "::ffff:169.254.169.254", false},
		{"168.0.0.0/7", "169.254.1.1", false},
		{"169.254.0.0/16", "169.254.1.1", true},
		{"169.254.7.0/24", "169.254.7.1", true},
		{"169.254.0.0/16", "169.254.169.254", false},
		{"169.254.169.254", "169.254.169.254", true},
		{"169.254.169.254/32", "::ffff:169.254.169.254", true},
		{"fd00::/8", "fd00:ec2::254", false},
		{"fd00:ec2::254", "fd00:ec2::254", true},
		{"100.64.0.0/10", "100.64.0.1", true},
		{"100.64.0.0/10", "100.100.100.200", false},
		{"fe80::/10", "fe80::1", true},
		{"224.0.0.0/4", "224.0.0.1", true},
	} {
		if err := allow(c.entry).Check(netip.MustParseAddr(c.addr)); (err == nil) != c.ok {
			t.Errorf("%s with %s allowed: %v", c.addr, c.entry, err)
		}
	}
}

func TestCheck(t *testing.T) {
	for _, c := range []struct {
		addr string
		ok   string // which of adHoc, private, own, allowed let it through
	}{
		{"8.8.8.8", "apol"},
		{"2606:4700::1", "apol"},
		{"127.0.0.1", "po"},
		{"::1", "pol"},
		{"10.0.0.1", "po"},
		{"10.1.2.3", "pol"},
		{"::ffff:10.1.2.3", "pol"},
		{"192.168.0.1", "po"},
		{"100.64.0.1", "po"},
		{"fd00::1", "po"},
		{"fd12::1", "pol"},
		{"192.0.2.1", "po"},
		{"169.254.1.1", ""},
		{"169.254.7.7", "l"},
		{"169.254.169.254", ""},
		{"fd00:ec2::254", ""},
		{"100.100.100.200", ""},
		{"fe80::1", ""},
		{"224.0.0.1", ""},
		{"255.255.255.255", ""},
		{"0.0.0.0", ""},
		{"::", ""},
	} {
		for name, policy := range map[string]egress.Policy{"a": adHoc, "p": private, "o": own, "l": allowed} {
			err := policy.Check(netip.MustParseAddr(c.addr))
			if (err == nil) != strings.Contains(c.ok, name) {
				t.Errorf("%s under policy %s: %v", c.addr, name, err)
			}
			if err != nil && !errors.Is(err, egress.ErrBlocked) {
				t.Errorf("%s: %v is not ErrBlocked", c.addr, err)
			}
		}
	}
}

func TestBlockedErrorSaysWhatToDo(t *testing.T) {
	err := adHoc.Check(netip.MustParseAddr("10.9.8.7"))
	blocked, ok := errors.AsType[*egress.BlockedError](err)
	if !ok || blocked.RetryClass() != retry.BlockedAddress {
		t.Fatalf("%v has no class", err)
	}
	if text := err.Error(); !strings.Contains(text, "targets.allow") || strings.Contains(text, "10.9.8.7") {
		t.Errorf("%q", text)
	}
	if text := adHoc.Check(netip.MustParseAddr("169.254.169.254")).Error(); strings.Contains(text, "targets.allow") {
		t.Errorf("%q advises to open the way to the metadata service", text)
	}
}

func TestCheckLiteral(t *testing.T) {
	for _, c := range []struct {
		host    string
		blocked egress.Class // Public: passes
	}{
		{"partner.example", egress.Public},
		{"8.8.8.8", egress.Public},
		{"134744072", egress.Public},
		{"2606:4700:4700::1111", egress.Public},
		{"1.2.3.4.5", egress.Public},
		{"256.256.256.256", egress.Public},
		{"10.example", egress.Public},
		{"0xfg.1", egress.Public},
		{"notlocalhost", egress.Public},
		{"localhost.partner.example", egress.Public},
		{"4294967296", egress.Public}, // too large for an address: a name
		{"127.0.0.1", egress.Loopback},
		{"127.0.0.1.", egress.Loopback},
		{"2130706433", egress.Loopback},
		{"017700000001", egress.Loopback},
		{"0x7f000001", egress.Loopback},
		{"0X7F.0.0.1", egress.Loopback},
		{"0x7f.1", egress.Loopback},
		{"0177.0.0.1", egress.Loopback},
		{"127.1", egress.Loopback},
		{"127.0.1", egress.Loopback},
		{"127.65535", egress.Loopback},
		{"00000177.0.0.01", egress.Loopback},
		{"010.0.0.1", egress.Private},   // 8.0.0.1 in octal, 10.0.0.1 to others
		{"0300.0250.1", egress.Private}, // 192.168.0.1
		{"0", egress.Unspecified},
		{"0x0", egress.Unspecified},
		{"0x", egress.Unspecified},
		{"4294967295", egress.Broadcast},
		{"2852039166", egress.Metadata},
		{"::1", egress.Loopback},
		{"::ffff:7f00:1", egress.Loopback},
		{"fe80::1%eth0", egress.LinkLocal},
		{"::1%lo", egress.Loopback},
		{"localhost", egress.Public}, // a name: judged when dialled
		{"metadata.google.internal", egress.Metadata},
	} {
		err := adHoc.CheckLiteral(c.host)
		var class egress.Class
		if blocked, ok := errors.AsType[*egress.BlockedError](err); ok {
			class = blocked.Class
		}
		if class != c.blocked {
			t.Errorf("%s: %v, want %v", c.host, err, c.blocked)
		}
	}
}

func TestCheckLiteralUnderPolicies(t *testing.T) {
	for _, c := range []struct {
		host   string
		policy egress.Policy
		ok     bool
	}{
		{"127.0.0.1", allowed, false},
		{"127.1", allow("127.0.0.1"), true},
		{"10.1.0.9", allowed, true},
		{"10.2.0.9", allowed, false},
		{"intern", allowed, true},
		{"0", private, false},
		{"metadata.google.internal", private, false},
		{"169.254.169.254", own, false},
	} {
		if err := c.policy.CheckLiteral(c.host); (err == nil) != c.ok {
			t.Errorf("%s: %v", c.host, err)
		}
	}
}

func TestAllowHosts(t *testing.T) {
	for host, want := range map[string]bool{
		"a.partner.example": true, "A.B.Partner.Example.": true, "intern": true, "INTERN.": true,
		"partner.example": false, "evilpartner.example": false, ".partner.example": false,
		"partner.example.evil": false, "x.intern": false, "": false,
	} {
		if got := allowed.For(host).Check(netip.MustParseAddr("192.168.1.1")) == nil; got != want {
			t.Errorf("%q may be private: %v, want %v", host, got, want)
		}
	}
	if allowed.For("a.partner.example").Check(netip.MustParseAddr("169.254.169.254")) == nil {
		t.Error("an allowed name may lead to the metadata service")
	}
	if allow("*").For("any.example").Check(netip.MustParseAddr("10.0.0.1")) == nil {
		t.Error("a bare * opens everything; only *.suffix is a pattern")
	}
}

func TestCheckTarget(t *testing.T) {
	for raw, want := range map[string]bool{
		"https://u:p@partner.example/x": true, "http://[::1]:8080/": false, "http://127.0.0.1:80/": false, "http://0x7f.1/": false,
	} {
		parsed, err := target.Parse(raw)
		if err != nil {
			t.Fatal(err)
		}
		if err := adHoc.CheckTarget(parsed); (err == nil) != want {
			t.Errorf("%s: %v", raw, err)
		}
	}
}

func FuzzCheckLiteral(f *testing.F) {
	for _, seed := range []string{"127.1", "0x7f.1", "::1", "a.b", "fe80::1%1", "0", ".", "1..2"} {
		f.Add(seed)
	}
	f.Fuzz(func(t *testing.T, host string) {
		addr, err := netip.ParseAddr(host)
		refused := adHoc.CheckLiteral(host) != nil
		if err == nil && refused != (egress.Classify(addr) != egress.Public) {
			t.Fatalf("%q: refused %v, but it is %v", host, refused, egress.Classify(addr))
		}
	})
}
