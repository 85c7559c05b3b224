package admin_test

import (
	"bytes"
	"compress/gzip"
	"io"
	"net/http"
	"net/http/httptest"
	"strings"
	"testing"

	"postern/proxy/admin"
)

// everyProfile has one request for each, none longer than a second.
var everyProfile = []string{
	"allocs", "goroutine", "heap", "threadcreate", "profile?seconds=1", "trace?seconds=0.1", "mutex?seconds=1", "block?seconds=1",
}

func TestProfilesAreOffUnlessAskedFor(t *testing.T) {
	on := false
	r := newRig(t, func(p *admin.Parts) { p.Profiles = func() bool { return on } })
	for _, name := range append(everyProfile, "") {
		r.refused(r.do("GET", "/debug/pprof/"+name, ""), 404, "admin.pprof", "--pprof")
	}
	on = true // a reload
	if w := r.do("GET", "/debug/pprof/", ""); w.Code != 200 || !strings.Contains(w.Body.String(), "heap") {
		t.Errorf("the index: %d %s", w.Code, w.Body)
	}
	for _, name := range []string{"cmdline", "symbol", "nothing", "heap/x"} {
		if w := r.do("GET", "/debug/pprof/"+name, ""); w.Code != 404 {
			t.Errorf("%s: %d %s", name, w.Code, w.Body)
		}
	}
	for _, name := range []string{"mutex", "block", "mutex?seconds=0", "block?seconds=x"} {
		r.refused(r.do("GET", "/debug/pprof/"+name, ""), 400, "seconds=10")
	}
	r.refused(r.do("POST", "/debug/pprof/heap", ""), 405)
	r.refused(newRig(t).do("GET", "/debug/pprof/heap", ""), 404, "admin.pprof") // nobody was there to ask
}

// Each is what go tool pprof or go tool trace reads: a compressed profile, or a trace that begins with its name.
func TestProfiles(t *testing.T) {
	r := newRig(t, func(p *admin.Parts) { p.Profiles = func() bool { return true } })
	server := httptest.NewServer(r.handler)
	t.Cleanup(server.Close)
	for _, name := range everyProfile {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			resp, err := http.Get(server.URL + "/debug/pprof/" + name)
			if err != nil {
				t.Fatal(err)
			}
			defer resp.Body.Close()
			text, err := io.ReadAll(resp.Body)
			if err != nil || resp.StatusCode != 200 || resp.Header.Get("Cache-Control") != "no-store" {
				t.Fatalf("%v, %s, %v: %.200q", err, resp.Status, resp.Header, text)
			}
			if strings.HasPrefix(name, "trace") {
				if !bytes.HasPrefix(text, []byte("go 1.")) {
					t.Errorf("no trace: %.40q", text)
				}
				return
			}
			unzipped, err := gzip.NewReader(bytes.NewReader(text))
			if err != nil {
				t.Fatal(err)
			}
			if profile, err := io.ReadAll(unzipped); err != nil || len(profile) == 0 {
				t.Errorf("%d bytes, %v", len(profile), err)
			}
		})
	}
}
