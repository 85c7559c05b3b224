package delivery_test

import (
	"bytes"
	"crypto/tls"
	"encoding/pem"
	"io"
	"net"
	"net/http/httptest"
	"os"
	"path/filepath"
	"strconv"
	"sync"
	"testing"
	"time"

	"golang.org/x/net/http2"
	"golang.org/x/net/http2/hpack"

	"postern/proxy/delivery"
	"postern/proxy/egress"
)

// h2recv is a receiver that speaks HTTP/2 frame by frame, so that it can do what no well-behaved server does.
type h2recv struct {
	net.Listener
	ca       string
	settings []http2.Setting
	late     bool // the server's SETTINGS are left to headers
	// greet runs after the server's SETTINGS, before any stream; nil: nothing.
	greet func(c *h2conn)
	// reply runs when a request is here whole.
	reply func(c *h2conn, q h2request)
	// headers runs when a stream is opened, before its body is here; nil: nothing.
	headers func(c *h2conn, stream uint32)

	wg    sync.WaitGroup
	mu    sync.Mutex // guards what follows
	conns []*h2conn
	seen  []h2request // every stream that was opened, in order
}

// h2request is one stream.
type h2request struct {
	conn, nth int // the connection's number, and the stream's among all, from 1
	stream    uint32
	fields    []hpack.HeaderField
	body      []byte
	bare      bool // END_STREAM was on HEADERS
}

// h2conn is one connection. Its frames are written under its lock.
type h2conn struct {
	net.Conn
	number int
	mute   bool // frames are read and nothing is said any more; guarded by mu
	mu     sync.Mutex
	framer *http2.Framer
	hpack  *hpack.Encoder
	block  bytes.Buffer
}

// do writes frames.
func (c *h2conn) do(f func(*http2.Framer)) {
	c.mu.Lock()
	defer c.mu.Unlock()
	if !c.mute {
		f(c.framer)
	}
}

// hush lets the connection look like one whose other end is gone.
func (c *h2conn) hush() {
	c.mu.Lock()
	defer c.mu.Unlock()
	c.mute = true
}

func (c *h2conn) answer(stream uint32, status int, body string) {
	c.start(stream, status, body == "")
	if body != "" {
		c.do(func(f *http2.Framer) { _ = f.WriteData(stream, true, []byte(body)) })
	}
}

// start sends an answer's headers.
func (c *h2conn) start(stream uint32, status int, end bool) {
	c.do(func(f *http2.Framer) {
		c.block.Reset()
		_ = c.hpack.WriteField(hpack.HeaderField{Name: ":status", Value: strconv.Itoa(status)})
		_ = f.WriteHeaders(http2.HeadersFrameParam{StreamID: stream, BlockFragment: c.block.Bytes(), EndStream: end, EndHeaders: true})
	})
}

func (c *h2conn) reset(stream uint32, code http2.ErrCode) {
	c.do(func(f *http2.Framer) { _ = f.WriteRSTStream(stream, code) })
}

func (c *h2conn) goAway(last uint32, code http2.ErrCode) {
	c.do(func(f *http2.Framer) { _ = f.WriteGoAway(last, code, []byte("debug")) })
}

func answer204(c *h2conn, q h2request) { c.answer(q.stream, 204, "") }

// newH2 starts a receiver that answers 204 unless change says otherwise.
func newH2(t testing.TB, change func(*h2recv)) *h2recv {
	t.Helper()
	certs := httptest.NewUnstartedServer(nil) // for its certificate, which is valid for 127.0.0.1 and example.com
	certs.StartTLS()
	defer certs.Close()
	r := &h2recv{reply: answer204, ca: filepath.Join(t.TempDir(), "ca.pem")}
	block := pem.EncodeToMemory(&pem.Block{Type: "CERTIFICATE", Bytes: certs.Certificate().Raw})
	if err := os.WriteFile(r.ca, block, 0o600); err != nil {
		t.Fatal(err)
	}
	if change != nil {
		change(r)
	}
	l, err := tls.Listen("tcp", "127.0.0.1:0", &tls.Config{Certificates: certs.TLS.Certificates, NextProtos: []string{"h2"}})
	if err != nil {
		t.Fatal(err)
	}
	r.Listener = l
	r.wg.Go(r.accept)
	t.Cleanup(r.stop)
	return r
}

func (r *h2recv) accept() {
	for {
		c, err := r.Accept()
		if err != nil {
			return
		}
		r.mu.Lock()
		conn := &h2conn{Conn: c, number: len(r.conns) + 1, framer: http2.NewFramer(c, c)}
		conn.hpack = hpack.NewEncoder(&conn.block)
		conn.framer.ReadMetaHeaders = hpack.NewDecoder(4096, nil)
		r.conns = append(r.conns, conn)
		r.mu.Unlock()
		r.wg.Go(func() { r.serve(conn) })
	}
}

func (r *h2recv) serve(c *h2conn) {
	defer c.Close()
	preface := make([]byte, len(http2.ClientPreface))
	if _, err := io.ReadFull(c, preface); err != nil || string(preface) != http2.ClientPreface {
		return
	}
	if !r.late {
		c.do(func(f *http2.Framer) { _ = f.WriteSettings(r.settings...) })
	}
	if r.greet != nil {
		r.greet(c)
	}
	open := map[uint32]*h2request{}
	for {
		frame, err := c.framer.ReadFrame()
		if err != nil {
			return
		}
		r.frame(c, frame, open)
	}
}

func (r *h2recv) frame(c *h2conn, frame http2.Frame, open map[uint32]*h2request) {
	switch f := frame.(type) {
	case *http2.SettingsFrame:
		if !f.IsAck() {
			c.do(func(out *http2.Framer) { _ = out.WriteSettingsAck() })
		}
	case *http2.PingFrame:
		if !f.IsAck() {
			c.do(func(out *http2.Framer) { _ = out.WritePing(true, f.Data) })
		}
	case *http2.MetaHeadersFrame:
		r.mu.Lock()
		q := h2request{conn: c.number, nth: len(r.seen) + 1, stream: f.StreamID, fields: f.Fields, bare: f.StreamEnded()}
		r.seen = append(r.seen, q)
		r.mu.Unlock()
		if r.headers != nil {
			r.headers(c, f.StreamID)
		}
		if q.bare {
			r.reply(c, q)
			return
		}
		open[f.StreamID] = &q
	case *http2.DataFrame:
		q := open[f.StreamID]
		q.body = append(q.body, f.Data()...)
		if n := uint32(len(f.Data())); n > 0 {
			c.do(func(out *http2.Framer) { _ = out.WriteWindowUpdate(0, n); _ = out.WriteWindowUpdate(f.StreamID, n) })
		}
		if f.StreamEnded() {
			r.mu.Lock()
			r.seen[q.nth-1].body = q.body
			r.mu.Unlock()
			r.reply(c, *q)
		}
	}
}

func (r *h2recv) stop() {
	r.Listener.Close()
	r.mu.Lock()
	for _, c := range r.conns {
		c.Conn.(*tls.Conn).NetConn().Close()
	}
	r.mu.Unlock()
	r.wg.Wait()
}

func (r *h2recv) url(path string) string { return "https://" + r.Addr().String() + path }

func (r *h2recv) streams() []h2request {
	r.mu.Lock()
	defer r.mu.Unlock()
	return append([]h2request(nil), r.seen...)
}

func (r *h2recv) connections() int {
	r.mu.Lock()
	defer r.mu.Unlock()
	return len(r.conns)
}

// endpoint is one that may speak HTTP/2 with r.
func (r *h2recv) endpoint(t testing.TB, concurrency int) *delivery.Endpoint {
	t.Helper()
	c, err := egress.New(egress.Options{Policy: egress.Policy{AllowPrivate: true}, Concurrency: concurrency, HTTP2: true, TLS: egress.TLS{CAFile: r.ca}})
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(c.Close)
	return &delivery.Endpoint{Name: "partner-a", Timeout: time.Minute, RoundTripper: c}
}
