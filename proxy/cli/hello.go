package cli

import (
	"context"
	"fmt"
	"io"
	"net"
	"net/http"
	"os"
	"slices"
	"strings"
	"sync"
	"time"

	"postern/proxy/cli/term"
	"postern/proxy/client"
)

// helloWait is how long the first postback may take: it needs one commit and one connection on loopback.
const helloWait = 20 * time.Second

// withHello runs a Postern for developers beside a receiver of its own, and shows the first postback on its way.
func (c *runCmd) withHello(ctx context.Context, s *session) error {
	c.Dev = true
	receiver, err := listenForHello(s.out)
	if err != nil {
		return err
	}
	defer receiver.close()
	var greeting sync.WaitGroup
	defer greeting.Wait()
	return runApp(ctx, instance{config: c.options(s), log: s.Stderr, ready: func(ingest, admin string) {
		greeting.Go(func() {
			if err := s.greet(ctx, ingest, admin, receiver); err != nil && ctx.Err() == nil {
				fmt.Fprintf(s.err, "postern: the first postback did not get through: %s\n", err)
			}
		})
	}})
}

// greet posts the first postback, and says what came of it and what to try next.
func (s *session) greet(ctx context.Context, address, admin string, receiver *helloReceiver) error {
	ctx, cancel := context.WithTimeout(ctx, helloWait)
	defer cancel()
	ingest, err := client.NewIngest(client.Config{Address: address, UserAgent: s.agent()})
	if err != nil {
		return err
	}
	defer ingest.Close()
	answer, err := ingest.Send(ctx, client.Message{
		Method: "POST", URL: receiver.base + "/postback?cid=hello-1", Body: []byte(`{"hello":"world"}`),
		Headers: []client.Header{{Name: "Content-Type", Value: "application/json"}},
	})
	if err != nil {
		return err
	}
	fmt.Fprintf(s.out, "Sent to Postern:      POST %s/postback?cid=hello-1\nPostern answered:     202, event %s is on disk\n", receiver.base, answer.Accepted.ID)
	select {
	case <-ctx.Done():
		return context.Cause(ctx)
	case got := <-receiver.first:
		_, err = fmt.Fprintf(s.out, "The receiver got:     %s\n%s\nTry next:\n  %s\n  %s   (answers 503: watch the retries)\n"+
			"  curl %[7]s%[8]s   (from then on it answers 200: replay what is dead)\n  %[5]s status\n  %[5]s events\n  %[6]s\n",
			got.line, got.headers, curl(address, receiver.base+"/again?cid=2"), curl(address, receiver.base+"/fail?cid=3"), os.Args[0], watching(admin),
			receiver.base, mendPath)
	}
	return err
}

// watching is how to see what happens: the dashboard in a browser, or where it has no address, the terminal.
func watching(admin string) string {
	if strings.HasPrefix(admin, "unix:") {
		return os.Args[0] + " top"
	}
	return "http://" + admin + "/   (the dashboard)"
}

// curl is the command that posts to a target through Postern.
func curl(ingest, target string) string {
	const start = "curl -d '{\"order\":1}' "
	if path, ok := strings.CutPrefix(ingest, "unix:"); ok {
		return start + "--unix-socket '" + path + "' 'http://localhost/" + target + "'"
	}
	return start + "'http://" + ingest + "/" + target + "'"
}

// mendPath is where a person asks the small receiver to answer 200 under /fail, too.
const mendPath = "/mend"

// helloReceiver is the small receiver: it shows what it gets, and answers 503 under /fail until somebody asked for
// mendPath.
type helloReceiver struct {
	base   string
	server *http.Server
	out    *term.Writer
	first  chan helloRequest

	mu     sync.Mutex // guards what follows
	seen   int
	mended bool
}

// helloRequest is one request as the receiver saw it.
type helloRequest struct{ line, headers string }

func listenForHello(out *term.Writer) (*helloReceiver, error) {
	listener, err := net.Listen("tcp", "127.0.0.1:0")
	if err != nil {
		return nil, fmt.Errorf("starting the receiver for the first postback: %w", err)
	}
	r := &helloReceiver{base: "http://" + listener.Addr().String(), out: out, first: make(chan helloRequest, 1)}
	r.server = &http.Server{Handler: r, ReadHeaderTimeout: 5 * time.Second}
	go r.server.Serve(listener)
	return r, nil
}

func (r *helloReceiver) close() { r.server.Close() }

// ServeHTTP hands the first request to greet and shows every later one in a line.
func (r *helloReceiver) ServeHTTP(w http.ResponseWriter, req *http.Request) {
	io.Copy(io.Discard, req.Body)
	r.mu.Lock()
	defer r.mu.Unlock()
	status := http.StatusOK
	if strings.HasPrefix(req.URL.Path, "/fail") && !r.mended {
		status = http.StatusServiceUnavailable
	}
	if req.URL.Path == mendPath {
		const answer = "The receiver is mended: /fail answers 200 from now on.\n"
		r.mended = true
		io.WriteString(io.MultiWriter(w, r.out), answer)
		return
	}
	r.showLocked(req, status)
	w.WriteHeader(status)
}

func (r *helloReceiver) showLocked(req *http.Request, status int) {
	r.seen++
	line := term.Clean(req.Method + " " + req.RequestURI)
	if r.seen == 1 {
		r.first <- helloRequest{line: line, headers: helloHeaders(req.Header)}
		return
	}
	fmt.Fprintf(r.out, "The receiver got:     %s (attempt %s), answered %d\n", line, term.Clean(req.Header.Get("Postern-Attempt")), status)
}

// added are the headers that Postern puts on every delivery.
var added = []string{"X-Delivery-Timestamp", "Postern-Event-Id", "Postern-Attempt"}

// helloHeaders lists a request's headers, and says which of them are Postern's.
func helloHeaders(h http.Header) string {
	var b strings.Builder
	names := make([]string, 0, len(h))
	for name := range h {
		names = append(names, name)
	}
	slices.Sort(names)
	for _, name := range names {
		note := ""
		if slices.Contains(added, name) {
			note = "   (added by Postern)"
		}
		fmt.Fprintf(&b, "  %s: %s%s\n", name, term.Clean(strings.Join(h[name], ", ")), note)
	}
	return b.String()
}
