package torture

import (
	"io"
	"io/fs"
	"net/http"
	"os"
	"path/filepath"
	"regexp"
	"strings"
	"syscall"
	"testing"
	"time"

	"postern/proxy/stage"
)

const root = "../.."

// sources is all of the program's own code, as one text. Strings that are joined over two lines are one.
func sources(t *testing.T) string {
	t.Helper()
	var b strings.Builder
	err := filepath.WalkDir(root, func(path string, d fs.DirEntry, err error) error {
		if err != nil || d.IsDir() || !strings.HasSuffix(path, ".go") || strings.HasSuffix(path, "_test.go") {
			return err
		}
		text, err := os.ReadFile(path)
		b.Write(text)
		return err
	})
	if err != nil {
		t.Fatal(err)
	}
	return regexp.MustCompile(`"\s*\+\s*"`).ReplaceAllString(b.String(), "")
}

// pageAfterADeadLetter is the page of metrics once one of each kind has been counted.
func pageAfterADeadLetter(t *testing.T, p *process) (page string) {
	t.Helper()
	nobody, err := stage.FreeAddr()
	if err != nil {
		t.Fatal(err)
	}
	if accepted := burst(t, p, 1, 1, func(int) string { return "/http://" + nobody + "/" }, nil); accepted != 1 {
		t.Fatal("the event was not accepted")
	}
	err = poll(2*time.Minute, "a dead letter to be counted", func() (bool, error) {
		resp, err := http.Get("http://" + p.admin + "/metrics")
		if err != nil {
			return false, err
		}
		defer resp.Body.Close()
		text, err := io.ReadAll(resp.Body)
		page = string(text)
		return strings.Contains(page, "\npostern_dead_letters_total{"), err
	})
	if err != nil {
		t.Fatal(err)
	}
	return page
}

// The runbook names what an operator will find: each log line is in the code as it is quoted, each metric is exported, each
// command and each document exists.
func TestRunbookTellsTheTruth(t *testing.T) {
	text, err := os.ReadFile(filepath.Join(root, "docs", "runbook.md"))
	if err != nil {
		t.Fatal(err)
	}
	code := sources(t)
	p := loaded(t, "targets: { allow_private: true }\ndefaults: { retry: { max_attempts: 1 } }\n")
	page := pageAfterADeadLetter(t, p)
	lines, metrics := 0, 0
	inline := regexp.MustCompile("(?s)```.*?```").ReplaceAllString(string(text), "") // blocks are run by the tests of all documents
	for _, quoted := range regexp.MustCompile("`([^`]+)`").FindAllStringSubmatch(inline, -1) {
		what := quoted[1]
		name := regexp.MustCompile(`^postern_[a-z_]+`).FindString(what)
		switch {
		case name != "":
			metrics++
			if !strings.Contains(page, "# TYPE "+name+" ") {
				t.Errorf("the metric %s is not exported", name)
			}
			for _, label := range regexp.MustCompile(`="([^"]+)"`).FindAllStringSubmatch(what, -1) {
				if !strings.Contains(strings.ReplaceAll(code, "-", "_"), `"`+label[1]+`"`) {
					t.Errorf("%s: nothing in the code is called %q", what, label[1])
				}
			}
		case strings.Contains(code, what), what == syscall.EROFS.Error(), what == syscall.EACCES.Error():
			lines++
		case strings.HasPrefix(what, "postern "):
			words := strings.Fields(what)
			if out := p.help(words[1:]); !strings.Contains(out, "Usage: postern "+words[1]) {
				t.Errorf("%s: %s", what, out)
			}
		case strings.Contains(what, " ") && !strings.HasPrefix(what, "ulimit"):
			t.Errorf("nothing in the code says %q", what)
		}
	}
	if lines < 20 || metrics < 10 {
		t.Errorf("%d texts and %d metrics were looked for: the page is not read as it is written", lines, metrics)
	}
	for _, link := range regexp.MustCompile(`\]\(([a-z-]+\.md)\)`).FindAllStringSubmatch(string(text), -1) {
		if _, err := os.Stat(filepath.Join(root, "docs", link[1])); err != nil {
			t.Error(err)
		}
	}
}
