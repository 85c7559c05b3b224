package client

import (
	"bufio"
	"errors"
	"fmt"
	"io"
	"net"
	"net/http"
	"strings"
	"testing"
	"time"
)

// raw accepts one connection, keeps the request's bytes and answers with a fixed text.
func raw(t *testing.T, answer string) (address string, request func() string) {
	t.Helper()
	listener, err := net.Listen("tcp", "127.0.0.1:0")
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() { listener.Close() })
	seen := make(chan string, 1)
	go func() {
		conn, err := listener.Accept()
		if err != nil {
			return
		}
		defer conn.Close()
		var b strings.Builder
		r, err := http.ReadRequest(bufio.NewReader(io.TeeReader(conn, &b)))
		if err == nil {
			io.Copy(io.Discard, r.Body)
		}
		fmt.Fprint(conn, answer)
		seen <- b.String()
	}()
	return listener.Addr().String(), func() string { return <-seen }
}

const accepted = "HTTP/1.1 202 Accepted\r\nPostern-Event-Id: evt_1\r\nContent-Length: 70\r\nConnection: close\r\n\r\n" +
	`{"id":"evt_1","endpoint":"a","state":"pending","duplicate":false}     `

func TestSendWritesTheTargetUnchanged(t *testing.T) {
	const odd = "/pb//x/../%2F?cid=a+b%20c%2Bd&sig=Zm9v+YmFy/w==;moo&empty=&flag"
	for _, c := range []struct {
		name string
		m    Message
		want []string
	}{
		{"by URL", Message{Method: "GET", URL: "https://partner.example" + odd}, []string{"GET / HTTP/1.1\r\n", "\r\nPostern-Url: https://partner.example" + odd + "\r\n"}},
		{"by name", Message{Method: "GET", To: "partner-a", Suffix: odd}, []string{"GET /to/partner-a" + odd + " HTTP/1.1\r\n"}},
		{"query alone", Message{Method: "GET", To: "a", Suffix: "?cid=1"}, []string{"GET /to/a?cid=1 HTTP/1.1\r\n"}},
		{"headers, body, wait", Message{Method: "PUT", To: "a", Body: []byte("x\x00"), Wait: 1500 * time.Millisecond,
			Headers: []Header{{"X-A", "1"}, {"X-A", "2"}, {"Idempotency-Key", "k"}}},
			[]string{"PUT /to/a HTTP/1.1\r\n", "\r\nContent-Length: 2\r\n", "\r\nX-A: 1\r\nX-A: 2\r\n", "\r\nPrefer: wait=2\r\n", "\r\nIdempotency-Key: k\r\n", "\r\n\r\nx\x00"}},
		{"no body", Message{Method: "POST", To: "a"}, []string{"\r\nContent-Length: 0\r\n"}},
	} {
		t.Run(c.name, func(t *testing.T) {
			address, request := raw(t, accepted)
			i, err := NewIngest(Config{Address: address, UserAgent: "Postern/9"})
			if err != nil {
				t.Fatal(err)
			}
			defer i.Close()
			answer, err := i.Send(t.Context(), c.m)
			if err != nil || answer.Accepted != (Accepted{ID: "evt_1", Endpoint: "a", State: "pending"}) || answer.EventID != "evt_1" || answer.Waited {
				t.Errorf("answer %+v, %v", answer, err)
			}
			got := request()
			for _, want := range c.want {
				if !strings.Contains(got, want) {
					t.Errorf("%q is not in the request:\n%s", want, got)
				}
			}
			if strings.Contains(got, "Accept-Encoding") {
				t.Errorf("a header that nobody asked for:\n%s", got)
			}
		})
	}
}

func TestSendRefusesWhatCannotBeSent(t *testing.T) {
	i, err := NewIngest(Config{Address: "127.0.0.1:1"})
	if err != nil {
		t.Fatal(err)
	}
	for _, c := range []struct {
		m    Message
		want string
	}{
		{Message{Method: "GET", URL: "https://p.example/a b?t=SEC1"}, "percent-encode"},
		{Message{Method: "GET", URL: "https://p.example/é"}, "percent-encode"},
		{Message{Method: "GET"}, "the target is missing"},
		{Message{Method: "GET", To: "a", Suffix: "x"}, "must begin with"},
		{Message{Method: "GET", To: "a", Suffix: "/\r\nX: 1"}, "percent-encode"},
		{Message{Method: "G T", To: "a"}, "method"},
		{Message{Method: "GET", To: "a", Headers: []Header{{"host", "x"}}}, "Host is always the target's"},
		{Message{Method: "GET", To: "a", Headers: []Header{{"content-length", "5"}}}, "Content-Length always fits"},
		{Message{Method: "GET", To: "a", Headers: []Header{{"transfer-encoding", "chunked"}}}, "Transfer-Encoding belongs"},
		{Message{Method: "GET", To: "a", Headers: []Header{{"Connection", "close"}}}, "Connection belongs"},
		{Message{Method: "GET", To: "a", Headers: []Header{{"TE", "trailers"}}}, "Te belongs"},
		{Message{Method: "GET", To: "a", Headers: []Header{{"Expect", "100-continue"}}}, "Expect belongs"},
		{Message{Method: "GET", To: "a", Headers: []Header{{"Proxy-Authorization", "SEC1"}}}, "Proxy-Authorization belongs"},
		{Message{Method: "GET", To: "a", Headers: []Header{{"X-Forwarded-For", "SEC1"}}}, "X-Forwarded-For belongs"},
		{Message{Method: "GET", To: "a", Headers: []Header{{"X-A", "SEC1\r\nX-B: 1"}}}, "value of the header X-A has a control character"},
		{Message{Method: "GET", To: "a", Headers: []Header{{"X-A", "SEC1\x00"}}}, "value of the header X-A has a control character"},
		{Message{Method: "GET", To: "a", Headers: []Header{{"Authorization SEC1", "x"}}}, "header's name is not valid"},
		{Message{Method: "GET", To: "a", Headers: []Header{{"", "x"}}}, "header's name is not valid"},
		{Message{Method: "GET", To: "a", Headers: []Header{{"Größe", "x"}}}, "header's name is not valid"},
	} {
		_, err := i.Send(t.Context(), c.m)
		if _, ok := errors.AsType[*ArgumentError](err); !ok || !strings.Contains(err.Error(), c.want) || strings.Contains(err.Error(), "SEC1") || strings.Contains(err.Error(), "no Postern") {
			t.Errorf("%+v: %v, want %q", c.m, err, c.want)
		}
	}
}

func TestSendAnswers(t *testing.T) {
	for _, c := range []struct {
		name, answer string
		check        func(Answer, error) bool
	}{
		{"the receiver's answer", "HTTP/1.1 201 Created\r\nPreference-Applied: wait\r\nPostern-Event-Id: evt_2\r\nContent-Length: 2\r\n\r\nhi",
			func(a Answer, err error) bool {
				return err == nil && a.Waited && a.Status == 201 && string(a.Body) == "hi" && a.EventID == "evt_2"
			}},
		{"a refusal", "HTTP/1.1 422 X\r\nContent-Type: application/problem+json\r\nContent-Length: 29\r\n\r\n" + `{"title":"T","detail":"Dddd"}`,
			func(_ Answer, err error) bool { return err != nil && err.Error() == "T: Dddd (status 422)" }},
		{"somebody else", "HTTP/1.1 200 OK\r\nContent-Length: 2\r\n\r\n{}",
			func(_ Answer, err error) bool { return err != nil && strings.Contains(err.Error(), "not a Postern") }},
	} {
		t.Run(c.name, func(t *testing.T) {
			address, request := raw(t, c.answer)
			i, err := NewIngest(Config{Address: address})
			if err != nil {
				t.Fatal(err)
			}
			defer i.Close()
			if a, err := i.Send(t.Context(), Message{Method: "GET", To: "a"}); !c.check(a, err) {
				t.Errorf("got %+v, %v", a, err)
			}
			request()
		})
	}
}
