package e2e

import (
	"os"
	"strings"
	"testing"
)

// piped is a Postern whose log goes into a pipe that the test reads, or does not.
func piped(t *testing.T, config string) (p *postern, reader *os.File) {
	t.Helper()
	p = newPostern(t, config)
	reader, writer, err := os.Pipe()
	if err != nil {
		t.Fatal(err)
	}
	p.stderr = writer
	p.start()
	writer.Close()
	return p, reader
}

// A log reader that dies must not take Postern with it.
func TestLogReaderDies(t *testing.T) {
	t.Parallel()
	r := newReceiver(t, script(status(500), status(200)))
	p, reader := piped(t, calm)
	reader.Close()
	p.waitState(p.accept("POST", "/"+r.url("/"), "x"), "delivered", patience)
	if code := p.stop(patience); code != 0 {
		t.Errorf("exit code %d", code)
	}
}

// A log reader that stalls holds up neither deliveries nor the stop.
func TestLogReaderStalls(t *testing.T) {
	t.Parallel()
	r := newReceiver(t, func(_ int, q request) reply {
		if strings.HasPrefix(q.Line, "POST /bad") {
			return status(400)
		}
		return status(200)
	})
	p, reader := piped(t, calm)
	defer reader.Close()
	for range 600 { // each leaves a line of some 250 bytes: more than a pipe holds
		p.accept("POST", "/"+r.url("/bad"), "x")
	}
	p.waitState(p.accept("POST", "/"+r.url("/good"), "x"), "delivered", patience)
	if code := p.stop(patience); code != 0 {
		t.Errorf("exit code %d", code)
	}
}

// What a receiver sends unasked is nobody's to print: net/http's own logger would.
func TestUnaskedAnswersAreNotPrinted(t *testing.T) {
	t.Parallel()
	for name, raw := range map[string]string{
		"204 with a body": "HTTP/1.1 204 No Content\r\n\r\nSECRET SECRET SECRET",
		"two answers":     "HTTP/1.1 200 OK\r\nContent-Length: 2\r\n\r\nokHTTP/1.1 200 OK\r\nX: SECRET\r\n\r\n",
	} {
		t.Run(name, func(t *testing.T) {
			r := newReceiver(t, func(int, request) reply { return reply{Raw: raw} })
			p := startPostern(t, calm+"log: { level: debug }\n")
			for range 3 {
				p.waitState(p.accept("POST", "/"+r.url("/"), "x"), "delivered", patience)
			}
			p.stop(patience)
			if strings.Contains(p.log.String(), "SECRET") {
				t.Error("the log shows what the receiver sent")
			}
		})
	}
}
