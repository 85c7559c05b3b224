package delivery_test

import (
	"bytes"
	"compress/gzip"
	"net"
	"regexp"
	"strconv"
	"strings"
	"testing"

	"postern/proxy/delivery"
	"postern/proxy/retry"
	"postern/spool"
)

func zipped(text string) string {
	var out bytes.Buffer
	w := gzip.NewWriter(&out)
	_, _ = w.Write([]byte(text))
	_ = w.Close()
	return out.String()
}

const isGzip = "200 OK\r\nContent-Encoding: gzip"

func TestBodyRules(t *testing.T) {
	one, bad := regexp.MustCompile("^1$"), regexp.MustCompile(`"status":\s*"error"`)
	end := regexp.MustCompile("END$")
	big := strings.Repeat("x", 64<<10)
	for _, c := range []struct {
		name             string
		matches, rejects *regexp.Regexp
		status, body     string
		want             retry.Class
		kept             string // of a failed attempt
	}{
		{"no rule", nil, nil, "200 OK", "Webhook message delivery failed with error: returned HTTP error 429", "", ""},
		{"no match", one, nil, "200 OK", "returned HTTP error 429", retry.BodyRule, "returned HTTP error 429"},
		{"match", one, nil, "200 OK", "1", "", ""},
		{"empty body does not match", one, nil, "200 OK", "", retry.BodyRule, ""},
		{"no content does not match", one, nil, "204 No Content", "", retry.BodyRule, ""},
		{"rejected", nil, bad, "200 OK", `{"status": "error"}`, retry.BodyRule, `{"status": "error"}`},
		{"not rejected", nil, bad, "201 Created", `{"status":"ok"}`, "", ""},
		{"both, matched and rejected", regexp.MustCompile("status"), bad, "200 OK", `{"status":"error"}`, retry.BodyRule, `{"status":"error"}`},
		{"both, well", regexp.MustCompile("status"), bad, "200 OK", `{"status":"ok"}`, "", ""},
		{"not a success anyway", one, nil, "500 Oops", "1", "http_500", "1"},
		{"gzip", one, nil, isGzip, zipped("1"), "", ""},
		{"gzip in capitals", one, nil, "200 OK\r\nContent-Encoding:  X-GZIP ", zipped("1"), "", ""},
		{"gzip, rejected", nil, bad, isGzip, zipped(`{"status":"error"}`), retry.BodyRule, `{"status":"error"}`},
		{"not gzip at all", one, nil, isGzip, "1", retry.BodyRule, "1"},
		{"gzip cut short by the receiver", regexp.MustCompile("^"), nil, isGzip, zipped("1")[:12], retry.BodyRule, ""},
		{"gzip with a wrong checksum", one, nil, isGzip, zipped("1")[:18] + "\x00\x00\x00\x00\x00\x00\x00\x00", retry.BodyRule, ""},
		{"empty gzip", regexp.MustCompile("^$"), nil, isGzip, "", "", ""},
		{"another coding is matched as it is", one, nil, "200 OK\r\nContent-Encoding: br", "1", "", ""},
		{"the bounded prefix", end, nil, "200 OK", big[3:] + "END", "", ""},
		{"beyond the bound", end, nil, "200 OK", big + "END", retry.BodyRule, big[:1024]},
		{"a bomb", regexp.MustCompile("^x+$"), nil, isGzip, zipped(strings.Repeat("x", 2<<20)), "", ""},
	} {
		t.Run(c.name, func(t *testing.T) {
			r := newRecv(t, sayBody(c.status, c.body))
			e := newEndpoint(t)
			e.BodyMatches, e.BodyRejects = c.matches, c.rejects
			if strings.HasPrefix(c.status, "204") {
				r.reply = say(ok204)
			}
			got := send(t, e, newEvent("POST", r.url("/"), "x"))
			if got.Class != c.want || !got.Sampled || got.Unsent {
				t.Fatalf("%+v, want %q", got, c.want)
			}
			if (got.Answer == nil) != (c.want == "") {
				t.Fatalf("answer %+v", got.Answer)
			}
			if got.Answer != nil && c.kept != "" && string(got.Answer.Body) != c.kept {
				t.Errorf("kept %q, want %q", got.Answer.Body, c.kept)
			}
		})
	}
}

// TestBrokenBody: a body that breaks off matters only to a rule that needs it.
func TestBrokenBody(t *testing.T) {
	for _, x := range []struct {
		name, status string
		rule         *regexp.Regexp
		wait         bool
		want         retry.Class
	}{
		{"success", "200 OK", nil, false, ""},
		{"success, and a client waits", "200 OK", nil, true, ""},
		{"success under a rule", "200 OK", regexp.MustCompile("^"), false, retry.Connection},
		{"failure", "503 Busy", nil, false, "http_503"},
		{"permanent failure", "404 No", nil, false, "http_404"},
	} {
		r := newRecv(t, func(c net.Conn, n int) bool {
			say("HTTP/1.1 "+x.status+"\r\nContent-Length: 1000\r\n\r\npart")(c, n)
			return false
		})
		e := newEndpoint(t)
		e.BodyMatches = x.rule
		got := newSender().Send(t.Context(), &delivery.Job{Event: newEvent("POST", r.url("/"), "x"), Number: 1, Endpoint: e, WantBody: x.wait})
		if got.Class != x.want || got.Stale || got.Unsent || !got.Sampled {
			t.Errorf("%s: %+v", x.name, got)
		}
		if x.wait && (got.Response == nil || !got.Response.TooBig) {
			t.Errorf("%s: response %+v passes for whole", x.name, got.Response)
		}
		if strings.HasPrefix(string(x.want), "http_") && string(got.Answer.Body) != "part" {
			t.Errorf("%s: kept %q", x.name, got.Answer.Body)
		}
	}
}

func TestFirstKilobyteIsKept(t *testing.T) {
	for size, want := range map[int]int{0: 0, 5: 5, 1023: 1023, 1024: 1024, 1025: 1024, 5 << 20: 1024} {
		r := newRecv(t, sayBody("500 Oops", strings.Repeat("\x00\xff", size/2)+strings.Repeat("!", size%2)))
		got := send(t, newEndpoint(t), newEvent("POST", r.url("/"), "x"))
		if got.Answer == nil || len(got.Answer.Body) != want || got.Answer.StatusCode != 500 {
			t.Errorf("size %d: kept %d", size, len(got.Answer.Body))
		}
	}
	r := newRecv(t, sayBody("500 Oops\r\nContent-Encoding: gzip", zipped("the reason")))
	if got := send(t, newEndpoint(t), newEvent("POST", r.url("/"), "x")); string(got.Answer.Body) != "the reason" {
		t.Errorf("kept %q", got.Answer.Body)
	}
	r = newRecv(t, sayBody("500 Oops\r\nContent-Encoding: gzip", "no gzip"))
	if got := send(t, newEndpoint(t), newEvent("POST", r.url("/"), "x")); string(got.Answer.Body) != "no gzip" {
		t.Errorf("kept %q", got.Answer.Body)
	}
}

func TestResponseForAWaitingClient(t *testing.T) {
	whole := strings.Repeat("b", 64<<10)
	for _, c := range []struct {
		name, status, body string
		method             string
		want               delivery.Response
	}{
		{"small", "201 Created\r\nX-B: 2\r\nX-A: 1\r\nX-B: 1\r\nLocation: /new", "made", "POST",
			delivery.Response{Status: 201, Body: []byte("made"), Headers: []spool.Header{{Name: "Content-Length", Value: "4"},
				{Name: "Location", Value: "/new"}, {Name: "X-A", Value: "1"}, {Name: "X-B", Value: "2"}, {Name: "X-B", Value: "1"}}}},
		{"hop by hop", "200 OK\r\nConnection: x-secret, keep-alive\r\nX-Secret: 1\r\nKeep-Alive: timeout=5\r\nUpgrade: h2c", "", "POST",
			delivery.Response{Status: 200, Headers: []spool.Header{{Name: "Content-Length", Value: "0"}}}},
		{"as coded as it came", isGzip, zipped("x"), "POST", delivery.Response{Status: 200, Body: []byte(zipped("x")),
			Headers: []spool.Header{{Name: "Content-Encoding", Value: "gzip"}, {Name: "Content-Length", Value: strconv.Itoa(len(zipped("x")))}}}},
		{"exactly the limit", "200 OK", whole, "POST", delivery.Response{Status: 200, Body: []byte(whole),
			Headers: []spool.Header{{Name: "Content-Length", Value: "65536"}}}},
		{"over the limit", "200 OK", whole + "b", "POST", delivery.Response{Status: 200, Body: []byte(whole), TooBig: true,
			Headers: []spool.Header{{Name: "Content-Length", Value: "65537"}}}},
	} {
		for _, rule := range []*regexp.Regexp{nil, regexp.MustCompile("^")} {
			r := newRecv(t, sayBody(c.status, c.body))
			e := newEndpoint(t)
			e.BodyMatches = rule
			got := newSender().Send(t.Context(), &delivery.Job{Event: newEvent(c.method, r.url("/"), "x"), Number: 1, Endpoint: e, WantBody: true})
			if got.Class != "" || got.Response == nil {
				t.Fatalf("%s: %+v", c.name, got)
			}
			resp := got.Response
			if resp.Status != c.want.Status || !bytes.Equal(resp.Body, c.want.Body) || resp.TooBig != c.want.TooBig {
				t.Errorf("%s: status %d, %d bytes, too big %v", c.name, resp.Status, len(resp.Body), resp.TooBig)
			}
			if len(resp.Headers) != len(c.want.Headers) {
				t.Fatalf("%s: %v", c.name, resp.Headers)
			}
			for i, field := range resp.Headers {
				if field != c.want.Headers[i] {
					t.Errorf("%s: %v, want %v", c.name, field, c.want.Headers[i])
				}
			}
		}
	}
}

func TestFailuresHaveNoResponse(t *testing.T) {
	r := newRecv(t, sayBody("500 Oops", "why"))
	got := newSender().Send(t.Context(), &delivery.Job{Event: newEvent("POST", r.url("/"), "x"), Number: 1, Endpoint: newEndpoint(t), WantBody: true})
	if got.Response != nil || got.Class != "http_500" {
		t.Errorf("%+v", got)
	}
}

// TestConnectionsAreKept: bodies within the bound are read to their end, so that one connection serves for all.
func TestConnectionsAreKept(t *testing.T) {
	for _, status := range []string{"200 OK", "503 Busy"} {
		r := newRecv(t, sayBody(status, strings.Repeat("x", 60<<10)))
		e := newEndpoint(t)
		e.RoundTripper = newTransport(t, 1)
		for range 5 {
			send(t, e, newEvent("POST", r.url("/"), "x"))
		}
		r.mu.Lock()
		if r.most != 1 || len(r.open) != 1 {
			t.Errorf("%s: %d connections at once, %d open now", status, r.most, len(r.open))
		}
		r.mu.Unlock()
	}
}
