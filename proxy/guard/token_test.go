package guard_test

import (
	"strings"
	"testing"

	"postern/proxy/guard"
)

func tokens(list ...string) func() [][]byte {
	return func() [][]byte {
		var out [][]byte
		for _, token := range list {
			out = append(out, []byte(token))
		}
		return out
	}
}

func TestToken(t *testing.T) {
	bearer := guard.Config{Tokens: tokens("new", "old")}
	own := guard.Config{Tokens: tokens("new", "old"), TokenHeader: "postern-token"}
	tests := []struct {
		name   string
		cfg    guard.Config
		header string
		want   int
	}{
		{"newest", bearer, "Authorization: Bearer new", 0},
		{"being rotated away", bearer, "Authorization: Bearer old", 0},
		{"scheme in lower case, two blanks", bearer, "Authorization: bearer  new", 0},
		{"wrong", bearer, "Authorization: Bearer neW", 401},
		{"a part of it", bearer, "Authorization: Bearer ne", 401},
		{"more than it", bearer, "Authorization: Bearer newnew", 401},
		{"none", bearer, "Accept: */*", 401},
		{"empty", bearer, "Authorization: Bearer ", 401},
		{"another scheme", bearer, "Authorization: Basic new", 401},
		{"no scheme", bearer, "Authorization: new", 401},
		{"twice", bearer, "Authorization: Bearer new\r\nAuthorization: Bearer new", 401},
		{"the other listener's header", bearer, "Postern-Token: new", 401},
		{"own header", own, "Postern-Token: new", 0},
		{"own header, old", own, "Postern-Token: old", 0},
		{"own header, wrong", own, "Postern-Token: Bearer new", 401},
		{"own header, empty", own, "Postern-Token:", 401},
		{"own header, twice", own, "Postern-Token: new\r\nPostern-Token: x", 401},
		{"the application's own authorization", own, "Authorization: Bearer new", 401},
		{"no token in force", guard.Config{Tokens: tokens()}, "Authorization: Bearer x", 401},
		{"an empty token in force", guard.Config{Tokens: tokens("")}, "Authorization: Bearer", 401},
	}
	for _, tt := range tests {
		t.Run(tt.name, func(t *testing.T) {
			g := guard.New(tt.cfg)
			// A token opens the door whatever the Host is, and is asked for in every form of a request.
			for _, line := range []string{"POST / HTTP/1.1", "GET http://partner.example/ HTTP/1.1", "OPTIONS * HTTP/1.1"} {
				if got := status(g, request(t, line, "Host: partner.example", tt.header)); got != tt.want {
					t.Errorf("%s: %d, want %d", line, got, tt.want)
				}
			}
		})
	}
}

func TestRefusalNamesTheHeader(t *testing.T) {
	for header, challenge := range map[string]string{"": "Bearer", "Postern-Token": "Postern-Token"} {
		g := guard.New(guard.Config{Tokens: tokens("secret"), TokenHeader: header})
		p := g.Check(request(t, "GET / HTTP/1.1", "Host: x", "Postern-Token: gue55ed", "Authorization: Bearer gue55ed"))
		if p == nil {
			t.Fatal("let in")
		}
		if got := p.Header["Www-Authenticate"]; len(got) != 1 || !strings.HasPrefix(got[0], challenge+" ") {
			t.Errorf("challenge %q, want %s", got, challenge)
		}
		if !strings.Contains(p.Detail, challenge) || strings.Contains(p.Detail, "gue55ed") || strings.Contains(p.Detail, "secret") {
			t.Errorf("detail %q", p.Detail)
		}
	}
}

// Rotation takes effect with the next request, without a new Guard.
func TestTokensAreReadAnew(t *testing.T) {
	current := "one"
	g := guard.New(guard.Config{Tokens: func() [][]byte { return [][]byte{[]byte(current)} }})
	r := request(t, "GET / HTTP/1.1", "Host: x", "Authorization: Bearer one")
	if got := status(g, r); got != 0 {
		t.Fatalf("before: %d", got)
	}
	current = "two"
	if got := status(g, r); got != 401 {
		t.Fatalf("after: %d", got)
	}
}
