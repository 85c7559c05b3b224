package e2e

import (
	"context"
	"io"
	"net/http"
	"strings"
	"testing"
)

// A client that leaves while it waits for the first attempt is let go at once; its event goes on. Whether somebody still
// waits for it shows in the goroutines alone.
func TestAClientThatLeavesIsLetGo(t *testing.T) {
	t.Parallel()
	r := newReceiver(t, script(reply{Hang: true}))
	p := newPostern(t, "shutdown_grace: 1s\ntargets: { allow_private: true }\ndefaults: { timeout: 60s }\n")
	p.options = []string{"--pprof"}
	p.start()
	waits := func() bool {
		resp, err := http.Get(p.admin + "/debug/pprof/goroutine?debug=1")
		if err != nil {
			t.Fatal(err)
		}
		defer resp.Body.Close()
		text, err := io.ReadAll(resp.Body)
		if err != nil || resp.StatusCode != 200 {
			t.Fatalf("%d %v", resp.StatusCode, err)
		}
		return strings.Contains(string(text), "ingest.(*Handler).await")
	}
	ctx, leave := context.WithCancel(t.Context())
	req, err := http.NewRequestWithContext(ctx, "POST", p.ingest+"/"+r.url("/"), strings.NewReader("x"))
	if err != nil {
		t.Fatal(err)
	}
	req.Header.Set("Prefer", "wait=60")
	left := make(chan error, 1)
	go func() {
		resp, err := http.DefaultClient.Do(req)
		if err == nil {
			resp.Body.Close()
		}
		left <- err
	}()
	r.wait(1, patience)
	p.eventually(patience, "the client to wait", waits)
	leave()
	if err := <-left; err == nil {
		t.Error("it was answered")
	}
	p.eventually(patience, "the client to be let go", func() bool { return !waits() })
	p.waitState(r.requests()[0].eventID(), "in_flight", patience)
}
