package configs

import (
	"crypto/tls"
	"slices"
	"testing"
	"time"

	"postern/proxy/target"
)

func TestEndpointsInheritFieldByField(t *testing.T) {
	c := mustLoad(t, `
endpoints:   # before defaults on purpose: the order of the file does not matter
  - name: own
    url: https://partner.example/
    retry: { max_delay: 2m }
    breaker: { cooldown: 1m }
    limits: []
    success: { body_rejects: 'no' }
    sign: { scheme: hub }
  - { name: all, url: "https://partner.example/" }
defaults:
  timeout: 3s
  retry: { base_delay: 1s, statuses: [404] }
  limits: ["10/1s"]
  burst: 5
  success: { body_matches: 'yes' }
  sign: { scheme: standard, secrets: [whsec_c2VjcmV0, b2xk] }
`, nil)
	own, all := c.Endpoints[0].Policy, c.Endpoints[1].Policy
	if own.Timeout != 3*time.Second || own.Retry.BaseDelay != time.Second || own.Retry.MaxDelay != 2*time.Minute ||
		own.Retry.MaxAttempts != 5 || own.Breaker.Cooldown != time.Minute || own.Breaker.FailureThreshold != 10 {
		t.Errorf("own: %+v", own)
	}
	if len(own.Limits) != 0 || own.Success.BodyMatches.String() != "yes" || own.Success.BodyRejects.String() != "no" {
		t.Errorf("own: limits %v, success %+v", own.Limits, own.Success)
	}
	if own.Sign.Scheme != SchemeHub || string(own.Sign.Secrets[0]) != "whsec_c2VjcmV0" {
		t.Errorf("hub signs with the text of the secret, got %q", own.Sign.Secrets)
	}
	if string(all.Sign.Secrets[0]) != "secret" || string(all.Sign.Secrets[1]) != "old" {
		t.Errorf("standard signs with the decoded secrets, got %q", all.Sign.Secrets)
	}
	if !slices.Equal(all.Limits, []Limit{{10, time.Second}}) || all.Burst != 5 || !slices.Equal(all.Retry.Statuses, []int{404}) {
		t.Errorf("all: %+v", all)
	}
	if c.Defaults.Success.BodyRejects != nil || c.Defaults.Retry.MaxDelay != time.Hour {
		t.Errorf("an endpoint changed the defaults: %+v", c.Defaults)
	}
}

// What a scheme has no use for is inherited without harm.
func TestSigningTemplate(t *testing.T) {
	c := mustLoad(t, `
defaults:
  sign: { scheme: template, header: X-Signature, template: "sha256={hex({timestamp}.{body})}", secrets: [one] }
endpoints:
  - { name: inherits, url: "https://partner.example/" }
  - { name: other, url: "https://partner.example/", sign: { scheme: hub } }
  - { name: plain, url: "https://partner.example/", sign: { scheme: none } }
`, nil)
	want := Sign{Scheme: SchemeTemplate, Header: "X-Signature", Template: "sha256={hex({timestamp}.{body})}"}
	got := c.Endpoints[0].Policy.Sign
	if got.Scheme != want.Scheme || got.Header != want.Header || got.Template != want.Template || string(got.Secrets[0]) != "one" {
		t.Errorf("inherited: %+v", got)
	}
	if got := c.Endpoints[1].Policy.Sign; got.Scheme != SchemeHub || string(got.Secrets[0]) != "one" {
		t.Errorf("another scheme: %+v", got)
	}
	if got := c.Endpoints[2].Policy.Sign; got.Scheme != SchemeNone {
		t.Errorf("none: %+v", got)
	}
}

func TestScheduleAndMaxAttemptsReplaceEachOther(t *testing.T) {
	for _, tc := range []struct {
		name, defaults, endpoint string
		attempts                 int
		schedule                 []time.Duration
		has                      bool
	}{
		{"neither", "{}", "{}", 5, nil, false},
		{"schedule", "{}", "{ schedule: [5s, 5m] }", 3, []time.Duration{5 * time.Second, 5 * time.Minute}, true},
		{"empty schedule", "{}", "{ schedule: [] }", 1, nil, true},
		{"a key without a value is not set", "{}", "{ schedule: , max_attempts: 2 }", 2, nil, false},
		{"schedule inherited", "{ schedule: [0s] }", "{}", 2, []time.Duration{0}, true},
		{"schedule replaces attempts", "{ max_attempts: 9 }", "{ schedule: [1s] }", 2, []time.Duration{time.Second}, true},
		{"attempts replace a schedule", "{ schedule: [1s, 1s, 1s] }", "{ max_attempts: 2 }", 2, nil, false},
	} {
		t.Run(tc.name, func(t *testing.T) {
			c := mustLoad(t, "defaults: { retry: "+tc.defaults+" }\nendpoints: [{ name: a, url: http://partner.example/, retry: "+tc.endpoint+" }]", nil)
			r := c.Endpoints[0].Policy.Retry
			if r.MaxAttempts != tc.attempts || r.HasSchedule != tc.has || !slices.Equal(r.Schedule, tc.schedule) {
				t.Errorf("%+v, want %d attempts, schedule %v (%v)", r, tc.attempts, tc.schedule, tc.has)
			}
		})
	}
}

func TestStatuses(t *testing.T) {
	if got := mustLoad(t, "defaults: { retry: { statuses: [] } }", nil).Defaults.Retry.Statuses; got != nil {
		t.Errorf("an empty list is not the built-in one: %v", got)
	}
}

func TestHeadersKeepTheirOrder(t *testing.T) {
	c := mustLoad(t, `
endpoints:
  - name: a
    url: https://partner.example/
    headers:
      set:
        X-Zulu: "1"
        Authorization: "Bearer ${TOKEN}"
        X-Alpha: 007
        user-agent: |
          us/1.0
`, env{"TOKEN": "tok"})
	want := []Header{{"X-Zulu", "1"}, {"Authorization", "Bearer tok"}, {"X-Alpha", "007"}, {"user-agent", "us/1.0"}}
	if got := c.Endpoints[0].Policy.Headers.Set; !slices.Equal(got, want) {
		t.Errorf("got %v, want %v", got, want)
	}
}

func TestLookup(t *testing.T) {
	c := mustLoad(t, `
endpoints:
  - { name: host, url: https://h.example/, match: ["https://partner.example"] }
  - { name: path, url: https://h.example/, match: ["https://partner.example/api/v1/"] }
  - { name: deep, url: https://h.example/, match: ["https://PARTNER.example:443/api/v1/users", "http://other.example/"] }
  - { name: Deep, url: https://h.example/ }
`, nil)
	for _, tc := range []struct{ url, want string }{
		{"https://partner.example/", "host"},
		{"https://partner.example/api/v10", "host"},
		{"https://partner.example/api/v1", "path"},
		{"https://partner.example/api/v1/x?cid=1", "path"},
		{"https://partner.example/api/v1/users/7", "deep"},
		{"http://other.example/x", "deep"},
		{"http://partner.example/", ""},
		{"https://partner.example:8443/", ""},
		{"https://sub.partner.example/", ""},
	} {
		u, err := target.Parse(tc.url)
		if err != nil {
			t.Fatal(err)
		}
		name := ""
		if e, ok := c.Match(u); ok {
			name = e.Name
		}
		if name != tc.want {
			t.Errorf("%s is governed by %q, want %q", tc.url, name, tc.want)
		}
	}
	if e, ok := c.Endpoint("Deep"); !ok || e != &c.Endpoints[3] {
		t.Errorf("Endpoint(Deep) = %v, %v", e, ok)
	}
	if _, ok := c.Endpoint("none"); ok {
		t.Error("an endpoint that is not there was found")
	}
}

func TestTLSAndProtocol(t *testing.T) {
	c, err := loadText(t, "defaults: { http2: false }\n"+at("tls: { min_version: 1.3, server_name: Partner.example }")+
		"  - { name: b, url: https://x.example/, http2: true, tls: { min_version: \"1.2\", server_name: \"2001:db8::1\" } }\n", nil)
	if err != nil {
		t.Fatal(err)
	}
	a, b := c.Endpoints[0].Policy, c.Endpoints[1].Policy
	if a.HTTP2 || a.TLS.Version() != tls.VersionTLS13 || a.TLS.ServerName != "Partner.example" {
		t.Errorf("%+v", a)
	}
	if !b.HTTP2 || b.TLS.Version() != tls.VersionTLS12 || b.TLS.ServerName != "2001:db8::1" {
		t.Errorf("%+v", b)
	}
	if d := Defaults().Defaults; !d.HTTP2 || d.TLS.Version() != tls.VersionTLS12 {
		t.Errorf("%+v", d)
	}
}
