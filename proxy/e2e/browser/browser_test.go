package browser_test

import (
	"io"
	"net/http"
	"net/http/httptest"
	"os"
	"path/filepath"
	"strings"
	"testing"

	"github.com/chromedp/chromedp"

	"postern/proxy/e2e/browser"
)

// A page runs its script, names under .example lead here, and other names nowhere; when the test is over, nothing is left.
func TestStart(t *testing.T) {
	page := httptest.NewServer(http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
		io.WriteString(w, "<title>page of "+r.Host+"</title><script>document.title += ' ' + (6 * 7)</script>")
	}))
	t.Cleanup(page.Close)
	t.Setenv("TMPDIR", t.TempDir()) // other tests have browsers of their own
	before := profiles(t)
	t.Run("run", func(t *testing.T) {
		ctx := browser.Start(t)
		at := "http://some.example" + page.URL[strings.LastIndex(page.URL, ":"):]
		if err := chromedp.Do(ctx, chromedp.Navigate(at)); err != nil {
			t.Fatal(err)
		}
		title, err := chromedp.Run(ctx, chromedp.Title())
		if err != nil || !strings.HasPrefix(title, "page of some.example") || !strings.HasSuffix(title, " 42") {
			t.Errorf("title %q, %v", title, err)
		}
		if err := chromedp.Do(ctx, chromedp.Navigate("http://elsewhere.invalid/")); err == nil || !strings.Contains(err.Error(), "ERR_NAME_NOT_RESOLVED") {
			t.Errorf("a name off this machine: %v", err)
		}
		if now := profiles(t); now != before+1 {
			t.Errorf("%d profiles, before it were %d", now, before)
		}
	})
	if now := profiles(t); now != before {
		t.Errorf("%d profiles are left, before it were %d", now, before)
	}
}

func profiles(t *testing.T) int {
	t.Helper()
	found, err := filepath.Glob(filepath.Join(os.TempDir(), "postern-browser-*"))
	if err != nil {
		t.Fatal(err)
	}
	return len(found)
}

func TestFind(t *testing.T) {
	t.Setenv(browser.Env, "/opt/own/chromium")
	if path, err := browser.Find(); path != "/opt/own/chromium" || err != nil {
		t.Errorf("%q, %v", path, err)
	}
	t.Setenv(browser.Env, "")
	t.Setenv("PATH", t.TempDir())
	if path, err := browser.Find(); err == nil || !strings.Contains(err.Error(), "apt-get install chromium") {
		t.Errorf("%q, %v", path, err)
	}
}
