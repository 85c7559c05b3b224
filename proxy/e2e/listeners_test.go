package e2e

import (
	"bufio"
	"context"
	"fmt"
	"io"
	"net"
	"net/http"
	"os"
	"path/filepath"
	"strings"
	"testing"
)

// call makes one request of a listener that is not the usual one: a socket, or one with a token.
func call(t *testing.T, c *http.Client, method, url string, headers ...string) int {
	t.Helper()
	req, err := http.NewRequest(method, url, strings.NewReader("x"))
	if err != nil {
		t.Fatal(err)
	}
	for _, h := range headers {
		name, value, _ := strings.Cut(h, ": ")
		if name == "Host" {
			req.Host = value
		}
		req.Header.Set(name, value)
	}
	resp, err := c.Do(req)
	if err != nil {
		t.Fatal(err)
	}
	defer resp.Body.Close()
	io.Copy(io.Discard, resp.Body)
	return resp.StatusCode
}

func overSocket(t *testing.T, path string) *http.Client {
	t.Helper()
	transport := &http.Transport{DialContext: func(ctx context.Context, _, _ string) (net.Conn, error) {
		return new(net.Dialer).DialContext(ctx, "unix", path)
	}}
	t.Cleanup(transport.CloseIdleConnections)
	return &http.Client{Transport: transport, Timeout: patience}
}

// Both listeners on sockets, with any Host; a socket that a kill left behind is no obstacle.
func TestUnixSockets(t *testing.T) {
	t.Parallel()
	r := newReceiver(t, nil)
	dir, err := os.MkdirTemp("", "pst") // the path of a socket must be short
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() { os.RemoveAll(dir) })
	in, admin := filepath.Join(dir, "in.sock"), filepath.Join(dir, "admin.sock")
	p := newPostern(t, "")
	ingest, api := overSocket(t, in), overSocket(t, admin)
	for _, mode := range []os.FileMode{0o600, 0o660} {
		p.writeConfig(fmt.Sprintf("listen: unix:%s\nsocket_mode: %04o\nadmin: { listen: \"unix:%s\", socket_mode: \"%04o\" }\n", in, mode, admin, mode) + calm)
		p.launch()
		p.eventually(patience, "the sockets to answer", func() bool {
			resp, err := api.Get("http://any.example/readyz")
			if err != nil {
				return false
			}
			resp.Body.Close()
			return resp.StatusCode == 200
		})
		if code := call(t, ingest, "POST", "http://any.example/", "Postern-Url: "+r.url("/x")); code != 202 {
			t.Errorf("ingest over a socket: status %d", code)
		}
		for _, socket := range []string{in, admin} {
			if info, err := os.Stat(socket); err != nil || info.Mode().Perm() != mode {
				t.Errorf("the socket: %v, %v, want mode %o", info, err, mode)
			}
		}
		if _, stderr, code := p.run("healthcheck", "--admin", "unix:"+admin); code != 0 {
			t.Errorf("healthcheck over a socket: exit code %d: %s", code, stderr)
		}
		if stdout, stderr, code := p.run("send", "--ingest", "unix:"+in, r.url("/sent")); code != 0 {
			t.Errorf("send over a socket: exit code %d: %s%s", code, stdout, stderr)
		}
		p.kill()
	}
	p.launch()
	p.eventually(patience, "the socket to be replaced", func() bool { _, err := api.Get("http://any.example/healthz"); return err == nil })
	if code := p.stop(patience); code != 0 {
		t.Errorf("exit code %d", code)
	}
	if left, err := os.ReadDir(dir); err != nil || len(left) != 0 {
		t.Errorf("left behind after a stop: %v, %v", left, err)
	}
}

// Beyond max_connections a request gets 503 and is counted; the probes are answered all the same. What has been
// begun is served.
func TestMaxConnections(t *testing.T) {
	t.Parallel()
	r := newReceiver(t, nil)
	p := newPostern(t, "")
	p.writeConfig(fmt.Sprintf("listen: %s\nmax_connections: 4\nadmin: { listen: %s, max_connections: 4 }\n",
		strings.TrimPrefix(p.ingest, "http://"), strings.TrimPrefix(p.admin, "http://")) + calm)
	p.start()
	half := "POST /" + r.url("/slow") + " HTTP/1.1\r\nHost: localhost\r\nContent-Length: 1048576\r\n\r\n"
	hold := func(url, begin string) []net.Conn {
		var held []net.Conn
		for range 8 {
			c, err := net.Dial("tcp", strings.TrimPrefix(url, "http://"))
			if err != nil {
				t.Fatal(err)
			}
			t.Cleanup(func() { c.Close() })
			io.WriteString(c, begin)
			held = append(held, c)
		}
		return held
	}
	held := hold(p.ingest, half)
	p.eventually(patience, "a request to be refused", func() bool {
		a := p.send("POST", "/"+r.url("/x"), "x")
		return a.Status == 503 && a.Header.Get("Retry-After") == "1"
	})
	if n := p.metric("postern_rejected_total", `reason="too_many_connections"`); n == 0 {
		t.Error("the refusal is not counted")
	}
	hold(p.admin, "GET / HTTP/1.1\r\nX: ")
	for _, path := range []string{"/healthz", "/readyz"} {
		if code := call(t, client, "GET", p.admin+path); code != 200 {
			t.Errorf("%s: %d", path, code)
		}
	}
	if _, err := io.WriteString(held[0], strings.Repeat("x", 1<<20)); err != nil {
		t.Fatal(err)
	}
	resp, err := http.ReadResponse(bufio.NewReader(held[0]), nil)
	if err != nil {
		t.Fatal(err)
	}
	resp.Body.Close()
	if resp.StatusCode != 202 || len(r.wait(1, patience)[0].Body) != 1<<20 {
		t.Errorf("an upload that was held up: %d", resp.StatusCode)
	}
}

// A listener that is not loopback demands a token; it takes any Host then. The application's own Authorization passes.
func TestTokens(t *testing.T) {
	t.Parallel()
	r := newReceiver(t, nil)
	p := newPostern(t, "")
	_, inPort, _ := strings.Cut(strings.TrimPrefix(p.ingest, "http://"), ":")
	_, adminPort, _ := strings.Cut(strings.TrimPrefix(p.admin, "http://"), ":")
	listeners := fmt.Sprintf("listen: 0.0.0.0:%s\nadmin: { listen: \"0.0.0.0:%s\"%%s }\n", inPort, adminPort)
	p.writeConfig(fmt.Sprintf(listeners, "") + calm)
	if code, text := failing(t, p, patience); code != 2 || !strings.Contains(text, "token_file") {
		t.Errorf("without token_file: exit code %d: %s", code, text)
	}
	token := filepath.Join(p.dir, "token")
	writeToken := func(tokens string) {
		if err := os.WriteFile(token, []byte(tokens), 0o600); err != nil {
			t.Fatal(err)
		}
	}
	writeToken("old\n")
	p.writeConfig(fmt.Sprintf(listeners, ", token_file: token") + "token_file: token\n" + calm)
	p.launch()
	p.eventually(patience, "the admin listener to answer", func() bool {
		resp, err := client.Get(p.admin + "/readyz")
		if err != nil {
			return false
		}
		resp.Body.Close()
		return true
	})
	target := p.ingest + "/" + r.url("/x")
	for name, c := range map[string]struct {
		url, header string
		want        int
	}{
		"ingest without":         {target, "X: y", 401},
		"ingest with another":    {target, "Postern-Token: older", 401},
		"ingest, wrong header":   {target, "Authorization: Bearer old", 401},
		"ingest with it":         {target, "Postern-Token: old", 202},
		"admin without":          {p.admin + "/api/v1/status", "X: y", 401},
		"admin, metrics without": {p.admin + "/metrics", "X: y", 401},
		"admin with it":          {p.admin + "/api/v1/status", "Authorization: Bearer old", 200},
	} {
		method := "POST"
		if strings.HasPrefix(c.url, p.admin) {
			method = "GET"
		}
		if got := call(t, client, method, c.url, c.header, "Host: any.example"); got != c.want {
			t.Errorf("%s: status %d, want %d", name, got, c.want)
		}
	}
	if code := call(t, client, "POST", target, "Postern-Token: old", "Authorization: Bearer app"); code != 202 {
		t.Fatalf("status %d", code)
	}
	for _, q := range r.wait(2, patience) {
		if q.Header.Get("Postern-Token") != "" {
			t.Error("the token was passed on")
		}
	}
	if q := r.requests()[1]; q.Header.Get("Authorization") != "Bearer app" {
		t.Errorf("Authorization %q", q.Header.Get("Authorization"))
	}
	// Rotation without a restart: both, then the new one alone.
	writeToken("new\nold\n")
	p.eventually(patience, "the new token to open", func() bool { return call(t, client, "POST", target, "Postern-Token: new") == 202 })
	if code := call(t, client, "POST", target, "Postern-Token: old"); code != 202 {
		t.Errorf("the old token beside the new one: status %d", code)
	}
	writeToken("new\n")
	p.eventually(patience, "the old token to stop opening", func() bool { return call(t, client, "POST", target, "Postern-Token: old") == 401 })
	if strings.Contains(p.log.String(), "Bearer") {
		t.Error("the log shows a credential")
	}
}

// probes.listen shows the three pages and nothing else, to any Host.
func TestProbesListener(t *testing.T) {
	t.Parallel()
	addr := freeAddr(t)
	startPostern(t, calm+"probes: { listen: \""+addr+"\" }\n")
	for path, want := range map[string]int{
		"/healthz": 200, "/readyz": 200, "/metrics": 200, "/": 404, "/api/v1/status": 404, "/api/v1/events": 404, "/api/v1/dead-letters/purge": 404,
	} {
		if got := call(t, client, "GET", "http://"+addr+path, "Host: pod.example"); got != want {
			t.Errorf("%s: status %d, want %d", path, got, want)
		}
	}
	if got := call(t, client, "POST", "http://"+addr+"/api/v1/dead-letters/purge"); got != 404 && got != 405 {
		t.Errorf("purge on the probes listener: status %d", got)
	}
}

// Clients that send slowly, or nothing, or half a request, take nothing from the others and spool nothing.
func TestSlowClients(t *testing.T) {
	t.Parallel()
	r := newReceiver(t, nil)
	p := startPostern(t, calm)
	for range 50 {
		for _, begin := range []string{"", "POST /", "POST /" + r.url("/slow") + " HTTP/1.1\r\nHost: localhost\r\nContent-Length: 100\r\n\r\nhalf"} {
			c, err := net.Dial("tcp", strings.TrimPrefix(p.ingest, "http://"))
			if err != nil {
				t.Fatal(err)
			}
			t.Cleanup(func() { c.Close() })
			io.WriteString(c, begin)
		}
	}
	for range 20 {
		p.accept("POST", "/"+r.url("/quick"), "x")
	}
	for _, q := range r.wait(20, patience) {
		if !strings.HasPrefix(q.Line, "POST /quick ") {
			t.Errorf("half a request was sent on: %s", q.Line)
		}
	}
	p.settled(patience)
	if got := p.metric("postern_accepted_total"); got != 20 {
		t.Errorf("%v events were accepted, want 20", got)
	}
	if code := p.stop(patience); code != 0 {
		t.Errorf("exit code %d with slow clients", code)
	}
}
