package configs

import (
	"io/fs"
	"testing"
)

func TestLoopback(t *testing.T) {
	for address, want := range map[string]bool{
		"127.0.0.1:1": true, "127.9.9.9:1": true, "[::1]:1": true, "[::ffff:127.0.0.1]:1": true, "LocalHost:1": true, "unix:/run/p.sock": true,
		"0.0.0.0:1": false, ":1": false, "[::]:1": false, "10.0.0.1:1": false, "localhost.example:1": false, "": false,
	} {
		if got := (Listener{Address: address}).Loopback(); got != want {
			t.Errorf("Loopback(%q) = %v", address, got)
		}
	}
}

func TestCollisions(t *testing.T) {
	for _, tc := range []struct {
		a, b string
		want bool
	}{
		{"127.0.0.1:1", "127.0.0.1:1", true},
		{"127.0.0.1:1", "localhost:1", true},
		{"127.0.0.1:1", "[::ffff:127.0.0.1]:1", true},
		{"0.0.0.0:1", "127.0.0.1:1", true},
		{"Host.example:1", "host.example:1", true},
		{"unix:/a", "unix:/a", true},
		{"127.0.0.1:1", "127.0.0.1:2", false},
		{"127.0.0.1:1", "127.0.0.2:1", false},
		{"127.0.0.1:0", "127.0.0.1:0", false},
		{"unix:/a", "unix:/b", false},
		{"unix:/a", "127.0.0.1:1", false},
		{"", "", false},
	} {
		a, b := Listener{Address: tc.a}, Listener{Address: tc.b}
		if a.collides(b) != tc.want || b.collides(a) != tc.want {
			t.Errorf("%q and %q: want %v", tc.a, tc.b, tc.want)
		}
	}
}

func TestReachedBy(t *testing.T) {
	for _, tc := range []struct {
		listen, host, port string
		want               bool
	}{
		{"127.0.0.1:8089", "localhost", "8089", true},
		{"0.0.0.0:8089", "127.0.0.1", "8089", true},
		{"sidecar.local:80", "SIDECAR.local", "80", true},
		{"0.0.0.0:8089", "partner.example", "8089", false},
		{"127.0.0.1:8089", "127.0.0.1", "80", false},
		{"127.0.0.1:8089", "partner.example", "8089", false},
		{"unix:/run/p.sock", "localhost", "80", false},
	} {
		if got := (Listener{Address: tc.listen}).reachedBy(tc.host, tc.port); got != tc.want {
			t.Errorf("%s reached by %s:%s: %v", tc.listen, tc.host, tc.port, got)
		}
	}
}

func TestSplit(t *testing.T) {
	if network, address := (Listener{Address: "unix:/run/p.sock"}).Split(); network != "unix" || address != "/run/p.sock" {
		t.Errorf("%s %s", network, address)
	}
	if network, address := (Listener{Address: ":80"}).Split(); network != "tcp" || address != ":80" {
		t.Errorf("%s %s", network, address)
	}
}

func TestSocketModeAndConnections(t *testing.T) {
	for text, want := range map[string]fs.FileMode{"0660": 0o660, "\"0660\"": 0o660, "660": 0o660, "\"0600\"": 0o600, "0666": 0o666} {
		c, err := loadText(t, "listen: unix:/run/p.sock\nsocket_mode: "+text+"\nmax_connections: 7\nadmin: { max_connections: 8 }\nprobes: { max_connections: 9 }\n", nil)
		if err != nil {
			t.Errorf("%s: %v", text, err)
			continue
		}
		if c.Listen.SocketMode != want || c.Admin.SocketMode != DefaultSocketMode {
			t.Errorf("%s: %o, admin %o", text, c.Listen.SocketMode, c.Admin.SocketMode)
		}
		if c.Listen.MaxConnections != 7 || c.Admin.MaxConnections != 8 || c.Probes.MaxConnections != 9 {
			t.Errorf("%+v %+v %+v", c.Listen, c.Admin, c.Probes)
		}
	}
}
