package main

import (
	"bufio"
	"encoding/json"
	"errors"
	"io"
	"net/http"
	"strings"
	"testing"
	"time"
)

func TestRequestIsOneThatOthersRead(t *testing.T) {
	for _, size := range []int{0, 100, 500, 1024} {
		in := bufio.NewReader(strings.NewReader(string(request(loadSpec{Addr: "127.0.0.1:8089", Body: size}, "/to/sink"))))
		r, err := http.ReadRequest(in)
		if err != nil {
			t.Fatal(err)
		}
		body, err := io.ReadAll(r.Body)
		if err != nil || r.Method != "POST" || r.RequestURI != "/to/sink" || r.Host != "127.0.0.1:8089" {
			t.Errorf("%d bytes: %v %v %v %v", size, r.Method, r.RequestURI, r.Host, err)
		}
		if !json.Valid(body) || (size >= 100 && len(body) != size) {
			t.Errorf("%d bytes were wanted, %d are there: %s", size, len(body), body)
		}
		if in.Buffered() > 0 {
			t.Errorf("%d bytes: something follows the request", size)
		}
	}
}

func TestGetIsOneThatOthersRead(t *testing.T) {
	r, err := http.ReadRequest(bufio.NewReader(strings.NewReader(string(request(loadSpec{Addr: "a", Get: true}, "/to/sink")))))
	if err != nil || r.Method != "GET" || len(r.RequestURI) != getTarget || r.ContentLength != 0 || r.URL.Query().Get("amount") != "19.99" {
		t.Errorf("%v, %+v", err, r)
	}
}

func TestRequestsAreSpreadOverPaths(t *testing.T) {
	all := requests(loadSpec{Path: "/to/e", Spread: 3, Body: 100})
	if len(all) != 3 || !strings.HasPrefix(string(all[0]), "POST /to/e0 ") || !strings.HasPrefix(string(all[2]), "POST /to/e2 ") {
		t.Errorf("%q", all)
	}
	if one := requests(loadSpec{Path: "/to/e", Body: 100}); len(one) != 1 || !strings.HasPrefix(string(one[0]), "POST /to/e ") {
		t.Errorf("%q", one)
	}
}

// What is stamped into a request is what the other side reads, however it is written.
func TestStamp(t *testing.T) {
	at := time.Unix(1_234_567_890, 987_654_321)
	for _, get := range []bool{false, true} {
		text := request(loadSpec{Addr: "a", Body: 100, Get: get, Stamp: true}, "/x")
		var m message
		for _, want := range []time.Time{{}, at, time.Unix(0, 0)} {
			if !want.IsZero() {
				stamp(text, want)
			}
			if err := readHead(bufio.NewReader(strings.NewReader(string(text))), &m); err != nil {
				t.Fatal(err)
			}
			if want.IsZero() {
				want = time.Unix(0, 0)
			}
			if m.sent != want.UnixNano() {
				t.Errorf("read %d, want %d", m.sent, want.UnixNano())
			}
		}
	}
}

func TestReadHead(t *testing.T) {
	for _, c := range []struct {
		name, in string
		want     message
		err      error
	}{
		{name: "request", in: "POST /x HTTP/1.1\r\nHost: a\r\nContent-Length: 12\r\nPostern-Event-Id: evt_1\r\n\r\n",
			want: message{start: []byte("POST /x HTTP/1.1"), length: 12, eventID: []byte("evt_1")}},
		{name: "letters", in: "GET / HTTP/1.1\r\ncontent-LENGTH:7\r\npostern-EVENT-id:  a  \r\nConnection: Close\r\n\r\n",
			want: message{start: []byte("GET / HTTP/1.1"), length: 7, eventID: []byte("a"), closes: true}},
		{name: "bare", in: "HTTP/1.1 202 Accepted\r\n\r\n", want: message{start: []byte("HTTP/1.1 202 Accepted")}},
		{name: "end", in: "", err: io.EOF},
		{name: "cut line", in: "POST /x", err: io.ErrUnexpectedEOF},
		{name: "cut head", in: "POST /x HTTP/1.1\r\nHost: a\r\n", err: io.ErrUnexpectedEOF},
		{name: "chunked", in: "POST /x HTTP/1.1\r\nTransfer-Encoding: chunked\r\n\r\n", err: errChunked},
		{name: "no colon", in: "POST /x HTTP/1.1\r\nnonsense\r\n\r\n", err: errHead},
		{name: "negative", in: "POST /x HTTP/1.1\r\nContent-Length: -1\r\n\r\n", err: errHead},
		{name: "long", in: "POST /x HTTP/1.1\r\nA: " + strings.Repeat("x", 5000) + "\r\n\r\n", err: bufio.ErrBufferFull},
	} {
		t.Run(c.name, func(t *testing.T) {
			var got message
			err := readHead(bufio.NewReaderSize(strings.NewReader(c.in), 4096), &got)
			if !errors.Is(err, c.err) {
				t.Fatalf("error %v, want %v", err, c.err)
			}
			if err == nil && (string(got.start) != string(c.want.start) || got.length != c.want.length ||
				string(got.eventID) != string(c.want.eventID) || got.closes != c.want.closes) {
				t.Errorf("got %+v, want %+v", got, c.want)
			}
		})
	}
}

// A message is used again and again: nothing of one head may show in the next.
func TestReadHeadForgetsTheLastOne(t *testing.T) {
	in := bufio.NewReader(strings.NewReader("A / HTTP/1.1\r\nContent-Length: 0\r\nPostern-Event-Id: evt_1\r\nBench-Sent: 7\r\nConnection: close\r\n\r\nB / HTTP/1.1\r\n\r\n"))
	var m message
	for range 2 {
		if err := readHead(in, &m); err != nil {
			t.Fatal(err)
		}
	}
	if string(m.start) != "B / HTTP/1.1" || m.length != 0 || len(m.eventID) != 0 || m.closes || m.sent != 0 {
		t.Errorf("got %+v", m)
	}
}

func TestStatus(t *testing.T) {
	for line, want := range map[string]int{
		"HTTP/1.1 202 Accepted": 202, "HTTP/1.1 503": 503, "HTTP/1.0 200 OK": 0, "HTTP/1.1 2": 0, "": 0, "HTTP/1.1 abc x": 0,
	} {
		if got := status([]byte(line)); got != want {
			t.Errorf("%q: got %d, want %d", line, got, want)
		}
	}
}
