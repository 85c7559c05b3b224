package ui_test

import (
	"fmt"
	"net/http"
	"net/http/httptest"
	"os"
	"path/filepath"
	"regexp"
	"strings"
	"testing"

	"postern/proxy/ui"
)

func get(h http.Handler, path string) *httptest.ResponseRecorder {
	w := httptest.NewRecorder()
	h.ServeHTTP(w, httptest.NewRequest("GET", path, nil))
	return w
}

// TestFiles follows every reference of a page: each leads to a file of the page, with its type and the policy.
func TestFiles(t *testing.T) {
	reference := regexp.MustCompile(`(?:src|href)="(/[^"]*)"|from '\./([^']+)'`)
	for name, page := range map[string]http.Handler{"dashboard": ui.Dashboard(), "fleet": ui.Fleet()} {
		seen, queue := map[string]bool{}, []string{"/"}
		for len(queue) > 0 {
			path := queue[0]
			if queue = queue[1:]; seen[path] {
				continue
			}
			seen[path] = true
			w := get(page, path)
			if w.Code != 200 || w.Header().Get("Content-Type") == "" || w.Header().Get("Content-Length") != fmt.Sprint(w.Body.Len()) {
				t.Errorf("%s: %s: %d %v", name, path, w.Code, w.Header())
			}
			for _, want := range []string{"default-src 'none'", "script-src 'self'", "style-src 'self'", "connect-src 'self'", "frame-ancestors 'none'", "require-trusted-types-for 'script'"} {
				if csp := w.Header().Get("Content-Security-Policy"); !strings.Contains(csp, want) || strings.Contains(csp, "unsafe") {
					t.Errorf("%s: %s: the policy is %q, without %s", name, path, csp, want)
				}
			}
			for _, found := range reference.FindAllStringSubmatch(w.Body.String(), -1) {
				if found[2] != "" {
					found[1] = "/ui/" + found[2]
				}
				queue = append(queue, found[1])
			}
		}
		if len(seen) < 8 {
			t.Errorf("%s: only %v", name, seen)
		}
		for _, path := range []string{"/ui/", "/ui/index.html", "/ui/nothing.js", "/ui/../ui.go", "/ui/x/main.js", "/main.js", "/ui/%2e%2e/ui.go"} {
			if w := get(page, path); w.Code != 404 {
				t.Errorf("%s: %s: %d", name, path, w.Code)
			}
		}
	}
}

// TestNothingFromElsewhere: no address of another place, nothing inline, and no text that becomes markup.
func TestNothingFromElsewhere(t *testing.T) {
	files, err := filepath.Glob("assets/*")
	if err != nil || len(files) < 10 {
		t.Fatal(files, err)
	}
	for _, file := range files {
		text, err := os.ReadFile(file)
		if err != nil {
			t.Fatal(err)
		}
		rest := strings.ReplaceAll(string(text), "http://www.w3.org/2000/svg", "")
		for _, bad := range []string{`https?://`, `innerHTML`, `outerHTML`, `insertAdjacentHTML`, `document\.write`, `\beval\(`, `new Function`, `<style`, `\sstyle=`, `<script>`, `\son\w+="`, `\.cookie`} {
			if found := regexp.MustCompile(bad).FindString(rest); found != "" && !(strings.HasSuffix(file, ".svg") && bad == `\sstyle=`) {
				t.Errorf("%s has %q", file, found)
			}
		}
	}
}
