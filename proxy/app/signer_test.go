package app

import (
	"net/http"
	"strings"
	"testing"
	"time"

	"postern/configs"
	"postern/proxy/signing"
)

// signedBy tells which secrets made the endpoint's signature; the endpoint's scheme is standard.
func signedBy(t *testing.T, b *book, endpoint string, secrets ...string) []string {
	t.Helper()
	header := http.Header{}
	for _, field := range b.find(endpoint).endpoint.Sign.Sign("evt_1", time.Now(), []byte("x")) {
		header.Set(field.Name, field.Value)
	}
	var made []string
	for _, text := range secrets {
		key, err := signing.ParseSecret(signing.Standard, text)
		if err != nil {
			t.Fatal(err)
		}
		v := signing.Verifier{Scheme: signing.Standard, Secrets: [][]byte{key}}
		if v.Verify(header, []byte("x")) == nil {
			made = append(made, text)
		}
	}
	return made
}

// Which endpoints sign, and with which secrets, is the configuration's word, anew at each reload.
func TestBookSigns(t *testing.T) {
	sign := func(secrets string) string {
		return "endpoints:\n  - { name: a, url: \"https://a.example/\", sign: { scheme: standard, secrets: [" + secrets + "] } }\n" +
			"  - { name: b, url: \"https://b.example/\" }\n"
	}
	b, err := newBook(load(t, sign("b2xk")), quiet())
	if err != nil {
		t.Fatal(err)
	}
	defer b.close()
	if b.find("b").endpoint.Sign != nil || b.find("https://c.example").endpoint.Sign != nil {
		t.Error("an endpoint without a scheme signs")
	}
	for _, tc := range []struct{ configured, want string }{{"b2xk", "b2xk"}, {"bmV3, b2xk", "bmV3 b2xk"}, {"bmV3", "bmV3"}} {
		if err := b.reload(load(t, sign(tc.configured))); err != nil {
			t.Fatal(err)
		}
		if got := strings.Join(signedBy(t, b, "a", "bmV3", "b2xk"), " "); got != tc.want {
			t.Errorf("with [%s] it is signed by %s", tc.configured, got)
		}
	}
}

// Ad hoc targets are signed by the defaults.
func TestBookSignsAdHoc(t *testing.T) {
	b, err := newBook(load(t, "defaults: { sign: { scheme: standard, secrets: [c2Vj] } }\n"), quiet())
	if err != nil {
		t.Fatal(err)
	}
	defer b.close()
	if got := signedBy(t, b, "https://any.example", "c2Vj"); len(got) != 1 {
		t.Error("an ad hoc target is not signed by the defaults' secret")
	}
}

// A policy that cannot sign puts nothing in force: nothing leaves unsigned by mistake.
func TestBookRefusesWhatCannotSign(t *testing.T) {
	cfg := load(t, "endpoints: [{ name: a, url: \"https://a.example/\" }]\n")
	b, err := newBook(cfg, quiet())
	if err != nil {
		t.Fatal(err)
	}
	defer b.close()
	broken := *cfg
	broken.Endpoints = []configs.Endpoint{cfg.Endpoints[0]}
	broken.Endpoints[0].Policy.Sign = configs.Sign{Scheme: configs.SchemeHub}
	if err := b.reload(&broken); err == nil || b.config() != cfg {
		t.Errorf("the reload says %v", err)
	}
}
