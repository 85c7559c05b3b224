package ingest_test

import (
	"bytes"
	"context"
	"io"
	"net/http"
	"testing"

	"postern/proxy/ingest"
	"postern/spool"
)

type noSpool struct{}

func (noSpool) Append(_ context.Context, e *spool.Event) (spool.AppendResult, error) {
	return spool.AppendResult{ID: e.ID, Endpoint: e.Endpoint, State: spool.StatePending}, nil
}

// sink is a ResponseWriter that costs next to nothing, so that the handler's own work shows.
type sink struct{ header http.Header }

func (s *sink) Header() http.Header         { return s.header }
func (s *sink) Write(p []byte) (int, error) { return len(p), nil }
func (s *sink) WriteHeader(int)             {}

func BenchmarkPost(b *testing.B) {
	body := bytes.Repeat([]byte("x"), 500)
	h := ingest.New(ingest.Config{Listen: []string{"127.0.0.1:8089"}}, ingest.Parts{Book: fakeBook{}, Spool: noSpool{}})
	w := &sink{header: http.Header{}}
	reader := bytes.NewReader(nil)
	r := &http.Request{Method: "POST", RequestURI: "/https://partner.example/postback?cid=1234567890&sum=12.50", Host: "localhost:8089",
		ContentLength: int64(len(body)), Body: io.NopCloser(reader),
		Header: http.Header{"Content-Type": {"application/json"}, "Accept": {"*/*"}, "User-Agent": {"app/1"}, "Content-Length": {"500"}, "Authorization": {"Bearer x"}}}
	b.ReportAllocs()
	for b.Loop() {
		reader.Reset(body)
		clear(w.header)
		h.ServeHTTP(w, r)
	}
}
