package main

import (
	"net"
	"net/http"
	"net/http/httptest"
	"strings"
	"sync/atomic"
	"testing"
	"time"
)

// serve starts a server for one test and returns its address.
func serve(t *testing.T, h http.HandlerFunc) string {
	t.Helper()
	s := httptest.NewServer(h)
	t.Cleanup(s.Close)
	return strings.TrimPrefix(s.URL, "http://")
}

func TestCountedLoadSendsExactlyThatMany(t *testing.T) {
	var seen atomic.Int64
	addr := serve(t, func(w http.ResponseWriter, r *http.Request) {
		if r.ContentLength == 500 && r.RequestURI == "/to/sink" {
			seen.Add(1)
		}
		w.WriteHeader(http.StatusAccepted)
	})
	r, err := load(loadSpec{Addr: addr, Path: "/to/sink", Conns: 8, Body: 500, Want: 202, Count: 100})
	if err != nil || r.check() != nil {
		t.Fatal(err, r.check())
	}
	if seen.Load() != 100 || r.Sent != 100 || r.Counted != 100 || r.Ended <= r.Started {
		t.Errorf("the server saw %d; result %+v", seen.Load(), r)
	}
}

func TestLoadRefusesToCallOtherAnswersASuccess(t *testing.T) {
	var n atomic.Int64
	addr := serve(t, func(w http.ResponseWriter, _ *http.Request) {
		if n.Add(1) == 3 {
			http.Error(w, "full", http.StatusServiceUnavailable)
			return
		}
		w.WriteHeader(http.StatusAccepted)
	})
	r, err := load(loadSpec{Addr: addr, Path: "/", Conns: 1, Want: 202, Count: 5})
	if err != nil {
		t.Fatal(err)
	}
	if err := r.check(); err == nil || !strings.Contains(err.Error(), "503:1") || r.Sent != 5 {
		t.Errorf("one 503 among five answers: %v, %+v", err, r)
	}
}

func TestLoadTellsOfABrokenConnection(t *testing.T) {
	ln, err := net.Listen("tcp", "127.0.0.1:0")
	if err != nil {
		t.Fatal(err)
	}
	defer ln.Close()
	go func() {
		if c, err := ln.Accept(); err == nil {
			c.Close()
		}
	}()
	r, err := load(loadSpec{Addr: ln.Addr().String(), Path: "/", Conns: 1, Want: 202, Count: 5})
	if err != nil {
		t.Fatal(err)
	}
	if r.check() == nil || r.Failed != 1 || r.Error == "" {
		t.Errorf("a closed connection went unnoticed: %+v", r)
	}
}

func TestLoadRefusesAServerThatCloses(t *testing.T) {
	addr := serve(t, func(w http.ResponseWriter, _ *http.Request) {
		w.Header().Set("Connection", "close")
		w.WriteHeader(http.StatusAccepted)
	})
	r, err := load(loadSpec{Addr: addr, Path: "/", Conns: 1, Want: 202, Count: 2})
	if err != nil || r.check() == nil {
		t.Errorf("%v, %+v", err, r)
	}
}

// A server that stalls keeps later requests from leaving: they must count as late all the same.
func TestOpenLoopCountsFromTheIntendedTime(t *testing.T) {
	const stall = 300 * time.Millisecond
	var first atomic.Bool
	addr := serve(t, func(w http.ResponseWriter, _ *http.Request) {
		if first.CompareAndSwap(false, true) {
			time.Sleep(stall) // the receiver's, not the test's: the fault that is looked for
		}
		w.WriteHeader(http.StatusAccepted)
	})
	r, err := load(loadSpec{Addr: addr, Path: "/", Conns: 1, Want: 202, Rate: 100, For: stall})
	if err != nil || r.check() != nil {
		t.Fatal(err, r.check())
	}
	if r.Sent != 30 {
		t.Errorf("%d requests left, want 30", r.Sent)
	}
	// Thirty requests were due within the stall, ten milliseconds apart: half of them waited half of it or longer.
	if r.Latency.P50 < stall/3 || r.Latency.Max < stall {
		t.Errorf("a stall of %v on the only connection is hidden: %+v", stall, r.Latency)
	}
}

func TestCollectCountsWhatBelongsToTheTime(t *testing.T) {
	begin := time.Unix(1000, 0)
	at := func(ms, took int) answered {
		return answered{begin.Add(time.Duration(ms) * time.Millisecond), time.Duration(took) * time.Millisecond}
	}
	conns := []*loadConn{{done: []answered{at(50, 1), at(150, 2), at(950, 3)}}, {done: []answered{at(1000, 4), at(1101, 5)}}}
	closed := collect(loadSpec{Warm: 100 * time.Millisecond, For: time.Second}, conns, begin, begin.Add(1200*time.Millisecond))
	if closed.Sent != 5 || closed.Counted != 3 || closed.Latency.Max != 4*time.Millisecond || closed.rate() != 3 {
		t.Errorf("closed loop: %+v", closed)
	}
	// The last one was meant to leave at 1096 ms and counts; the second, meant for 148 ms, too; the first does not.
	open := collect(loadSpec{Warm: 100 * time.Millisecond, For: time.Second, Rate: 5}, conns, begin, begin.Add(1200*time.Millisecond))
	if open.Counted != 4 || open.Latency.Max != 5*time.Millisecond {
		t.Errorf("open loop: %+v", open)
	}
	if err := (loadResult{}).check(); err == nil {
		t.Error("a load without any answer is taken for a result")
	}
}
