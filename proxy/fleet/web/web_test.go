package web_test

import (
	"context"
	"encoding/json"
	"errors"
	"log/slog"
	"net/http"
	"net/http/httptest"
	"strings"
	"sync"
	"testing"
	"testing/synctest"
	"time"

	"postern/proxy/fleet/web"
	"postern/proxy/guard"
)

// asked counts how often Postgres would have been asked.
type asked struct {
	mu   sync.Mutex
	n    int
	took time.Duration
	err  error
}

func (a *asked) ask(ctx context.Context) (any, error) {
	a.mu.Lock()
	a.n++
	n, took, err := a.n, a.took, a.err
	a.mu.Unlock()
	select {
	case <-time.After(took):
		return n, err
	case <-ctx.Done():
		return nil, ctx.Err()
	}
}

func (a *asked) count() int {
	a.mu.Lock()
	defer a.mu.Unlock()
	return a.n
}

func handler(t *testing.T, a *asked) *web.Handler {
	h := web.New(web.Config{
		Guard: guard.New(guard.Config{Listen: []string{"127.0.0.1:8091"}}), Logger: slog.New(slog.DiscardHandler),
		Answers: []web.Answer{{Name: "status", Fresh: 5 * time.Second, Ask: a.ask}},
	})
	t.Cleanup(h.Close)
	return h
}

func do(ctx context.Context, h http.Handler, method, path string, headers ...string) *httptest.ResponseRecorder {
	r := httptest.NewRequestWithContext(ctx, method, path, nil)
	r.Host = "localhost:8091"
	for _, header := range headers {
		name, value, _ := strings.Cut(header, ": ")
		if r.Header.Set(name, value); name == "Host" {
			r.Host = value
		}
	}
	w := httptest.NewRecorder()
	h.ServeHTTP(w, r)
	return w
}

// Many viewers cost one question, whether they come together or within the time that an answer is fresh; one that took
// long is used for longer.
func TestViewersShareAQuestion(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		a := &asked{took: 200 * time.Millisecond}
		h := handler(t, a)
		var wg sync.WaitGroup
		for range 50 {
			wg.Go(func() {
				if w := do(t.Context(), h, "GET", "/api/v1/fleet/status"); w.Code != 200 || !strings.Contains(w.Body.String(), `"answer":1`) {
					t.Errorf("%d %s", w.Code, w.Body)
				}
			})
		}
		wg.Wait()
		time.Sleep(4900 * time.Millisecond)
		do(t.Context(), h, "GET", "/api/v1/fleet/status")
		if n := a.count(); n != 1 {
			t.Errorf("asked %d times", n)
		}
		a.took = time.Second
		time.Sleep(200 * time.Millisecond)
		if w := do(t.Context(), h, "GET", "/api/v1/fleet/status"); !strings.Contains(w.Body.String(), `"answer":2`) {
			t.Errorf("after its time: %s", w.Body)
		}
		time.Sleep(19900 * time.Millisecond)
		if w := do(t.Context(), h, "GET", "/api/v1/fleet/status"); !strings.Contains(w.Body.String(), `"answer":2`) {
			t.Errorf("one that took a second is used for twenty: %s", w.Body)
		}
	})
}

// Who gives up waiting ends nothing for the others, and Close ends it for all.
func TestGivingUp(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		a := &asked{took: 10 * time.Second}
		h := handler(t, a)
		var wg sync.WaitGroup
		wg.Go(func() {
			ctx, cancel := context.WithTimeout(t.Context(), time.Second)
			defer cancel()
			if w := do(ctx, h, "GET", "/api/v1/fleet/status"); w.Code != 503 {
				t.Errorf("the one who left: %d", w.Code)
			}
		})
		wg.Go(func() {
			if w := do(t.Context(), h, "GET", "/api/v1/fleet/status"); w.Code != 200 {
				t.Errorf("the other: %d %s", w.Code, w.Body)
			}
		})
		wg.Wait()
		time.Sleep(201 * time.Second)
		start := time.Now()
		time.AfterFunc(time.Second, h.Close)
		if w := do(t.Context(), h, "GET", "/api/v1/fleet/status"); w.Code != 503 || time.Since(start) != time.Second {
			t.Errorf("closed: %d after %v", w.Code, time.Since(start))
		}
	})
}

// A failure is told with what to do, without a secret, and is not asked about again at once.
func TestFailures(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		a := &asked{err: errors.New("connect to postgres://u:SEC@db/x: refused")}
		h := handler(t, a)
		for range 5 {
			w := do(t.Context(), h, "GET", "/api/v1/fleet/status")
			var told struct{ Title, Detail string }
			if json.Unmarshal(w.Body.Bytes(), &told) != nil || w.Code != 503 || told.Title != "Postgres does not answer" || strings.Contains(w.Body.String(), "SEC") || w.Header().Get("Retry-After") != "2" {
				t.Errorf("%d %v %s", w.Code, w.Header(), w.Body)
			}
		}
		if n := a.count(); n != 1 {
			t.Errorf("asked %d times", n)
		}
		a.err = nil
		time.Sleep(2 * time.Second)
		if w := do(t.Context(), h, "GET", "/api/v1/fleet/status"); w.Code != 200 {
			t.Errorf("well again: %d", w.Code)
		}
	})
}

func TestDoors(t *testing.T) {
	h := handler(t, &asked{})
	for _, c := range []struct {
		method, path string
		want         int
		header       string
	}{
		{"GET", "/", 200, ""}, {"HEAD", "/", 200, ""}, {"GET", "/ui/style.css", 200, ""}, {"GET", "/ui/index.html", 404, ""},
		{"GET", "/api/v1/fleet/status", 200, ""}, {"GET", "/api/v1/fleet/nothing", 404, ""}, {"GET", "/status", 404, ""}, {"GET", "/api/v1/fleet/", 404, ""},
		{"POST", "/api/v1/fleet/status", 405, ""}, {"DELETE", "/", 405, ""}, {"OPTIONS", "/api/v1/fleet/status", 405, ""},
		{"GET", "/", 403, "Host: evil.example"}, {"GET", "/api/v1/fleet/status", 403, "Host: evil.example"}, {"GET", "/api/v1/fleet/status", 403, "Origin: https://evil.example"},
		{"GET", "/api/v1/fleet/status", 403, "Sec-Fetch-Site: cross-site"}, {"GET", "http://evil.example/api/v1/fleet/status", 403, "Host: evil.example"},
	} {
		w := do(t.Context(), h, c.method, c.path, c.header)
		if w.Code != c.want {
			t.Errorf("%s %s, %s: %d, want %d", c.method, c.path, c.header, w.Code, c.want)
		}
		for name := range guard.Headers {
			if w.Header().Get(name) == "" {
				t.Errorf("%s %s: no %s", c.method, c.path, name)
			}
		}
	}
}
