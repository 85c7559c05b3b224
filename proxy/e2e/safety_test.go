package e2e

import (
	"fmt"
	"io"
	"net"
	"net/http"
	"testing"
)

// pipe joins the two ends of a tunnel until one of them closes.
func pipe(w http.ResponseWriter, to string) {
	there, err := net.Dial("tcp", to)
	if err != nil {
		w.WriteHeader(http.StatusBadGateway)
		return
	}
	defer there.Close()
	here, buffered, err := w.(http.Hijacker).Hijack()
	if err != nil {
		return
	}
	defer here.Close()
	io.WriteString(here, "HTTP/1.1 200 Connection established\r\n\r\n")
	done := make(chan struct{})
	go func() {
		defer close(done)
		io.Copy(there, buffered)
		there.Close()
	}()
	io.Copy(here, there)
	here.Close()
	<-done
}

// A redirect to an address inside is not followed, and nothing that was sent to the first host reaches it.
func TestRedirectToACanary(t *testing.T) {
	t.Parallel()
	canary := newReceiver(t, nil)
	for _, code := range []int{301, 302, 303, 307, 308} {
		for _, location := range []string{canary.url("/inside"), "//" + canary.addr() + "/inside"} {
			t.Run(fmt.Sprint(code, location), func(t *testing.T) {
				r := newReceiver(t, script(reply{Status: code, Header: map[string]string{"Location": location}}))
				p := startPostern(t, calm+fmt.Sprintf("endpoints:\n  - { name: partner, url: %q, headers: { set: { X-Api-Key: k } } }\n", r.url("/")))
				e := p.waitState(p.accept("POST", "/to/partner", "x", "Authorization: Bearer b"), "dead_letter", patience)
				if len(e.Attempts) != 1 || e.Attempts[0].Error != "redirect" || e.Attempts[0].StatusCode != code || len(r.requests()) != 1 {
					t.Errorf("%+v, %d requests", e.Attempts, len(r.requests()))
				}
				// A client that waits gets no redirect to follow either.
				if a := p.send("POST", "/to/partner", "x", "Prefer: wait=5"); a.Status != 202 || a.Header.Get("Location") != "" {
					t.Errorf("waiting: status %d, Location %q", a.Status, a.Header.Get("Location"))
				}
			})
		}
	}
	if canary.mostOpen() != 0 {
		t.Errorf("%d connections to the canary", canary.mostOpen())
	}
}

// The environment's proxy variables mean nothing to Postern.
func TestProxyVariables(t *testing.T) {
	t.Parallel()
	canary, r := newReceiver(t, nil), newReceiver(t, nil)
	p := newPostern(t, calm)
	for _, name := range []string{"HTTP_PROXY", "http_proxy", "HTTPS_PROXY", "https_proxy", "ALL_PROXY", "all_proxy"} {
		p.env = append(p.env, name+"="+canary.url(""))
	}
	p.env = append(p.env, "NO_PROXY=", "no_proxy=")
	p.start()
	p.accept("POST", "/"+r.url("/"), "x")
	r.wait(1, patience)
	// net/http leaves loopback out by itself: a name that leads nowhere would go to the proxy.
	id := p.accept("POST", "/http://no-such-host.invalid/", "x", "Postern-Max-Attempts: 1")
	if e := p.waitState(id, "dead_letter", patience); e.Attempts[0].Error != "dns" {
		t.Errorf("class %q, want dns", e.Attempts[0].Error)
	}
	if canary.mostOpen() != 0 {
		t.Errorf("%d connections to the proxy of the environment", canary.mostOpen())
	}
}

// A name that resolves to a loopback address is refused when it is dialled, unless it is allowed.
func TestNamesOfPrivateAddresses(t *testing.T) {
	t.Parallel()
	canary := newReceiver(t, nil)
	_, port, _ := net.SplitHostPort(canary.addr())
	p := startPostern(t, "defaults: { retry: { max_attempts: 1 } }\n")
	for _, host := range []string{"localhost", "LocalHost", "localhost."} {
		e := p.waitState(p.accept("POST", "/http://"+host+":"+port+"/", "x"), "dead_letter", patience)
		if class := e.Attempts[0].Error; class != "blocked_address" && (class != "dns" || host != "localhost.") { // not all resolvers know it
			t.Errorf("%s: class %q, want blocked_address", host, class)
		}
	}
	if canary.mostOpen() != 0 {
		t.Errorf("%d connections to the canary", canary.mostOpen())
	}
	for name, allow := range map[string]string{"a network": "127.0.0.0/8", "a name": "localhost"} {
		t.Run(name, func(t *testing.T) {
			allowed := startPostern(t, fmt.Sprintf("targets: { allow: [%q] }\n", allow))
			allowed.waitState(allowed.accept("POST", "/http://localhost:"+port+"/", "x"), "delivered", patience)
		})
	}
}

func TestAdHocTargetsSwitchedOff(t *testing.T) {
	t.Parallel()
	r := newReceiver(t, nil)
	p := startPostern(t, "targets: { ad_hoc: false, allow_private: true }\nendpoints:\n  - { name: known, url: \""+r.url("/in")+"\" }\n")
	checkProblem(t, p.send("POST", "/"+r.url("/"), "x"), 403, "ad_hoc")
	checkProblem(t, p.send("POST", "/", "x", "Postern-Url: https://partner.example/"), 403, "ad_hoc")
	p.waitState(p.accept("POST", "/to/known", "x"), "delivered", patience)
}

// Ad hoc targets under an endpoint's match use its policy: whole origin, then whole path segments.
func TestMatchedTargetsUseThePolicy(t *testing.T) {
	t.Parallel()
	r := newReceiver(t, nil)
	p := startPostern(t, calm+fmt.Sprintf("endpoints:\n  - { name: partner, url: %q, match: [%q], headers: { set: { X-Api-Key: k } } }\n", r.url("/in"), r.url("/api")))
	for i, c := range []struct {
		path  string
		under bool
	}{{"/api", true}, {"/api/x?y=1", true}, {"/api?y=1", true}, {"/apix", false}, {"/", false}, {"/api/../other", false}, {"/api/%2e%2e/other", false}} {
		got := p.send("POST", "/"+r.url(c.path), "x").acceptance(t)
		if (got.Endpoint == "partner") != c.under {
			t.Errorf("%s: endpoint %q", c.path, got.Endpoint)
		}
		if q := r.wait(i+1, patience)[i]; (q.Header.Get("X-Api-Key") == "k") != c.under || q.Line != "POST "+c.path+" HTTP/1.1" {
			t.Errorf("%s: %q with key %q", c.path, q.Line, q.Header.Get("X-Api-Key"))
		}
	}
}
