package browser

import (
	"errors"
	"os"
	"path/filepath"
	"testing"
)

// AxeEnv names the file axe.min.js of axe-core, where it is not in the user's cache.
const AxeEnv = "POSTERN_TEST_AXE"

// axeFile is where .ci/axe puts it, below the user's cache.
const axeFile = "postern-test/axe-core-4.14.1/axe.min.js"

var errNoAxe = errors.New("no axe-core was found: .ci/axe fetches it, or name its axe.min.js in " + AxeEnv)

// Axe returns axe-core's script, to be evaluated in a page. As with Chromium, a test is skipped without it, and fails
// where CI is set.
func Axe(t testing.TB) string {
	t.Helper()
	text, err := readAxe()
	if err != nil {
		if os.Getenv("CI") != "" {
			t.Fatal(err)
		}
		t.Skip(err)
	}
	return text
}

func readAxe() (string, error) {
	path := os.Getenv(AxeEnv)
	if path == "" {
		cache, err := os.UserCacheDir()
		if err != nil {
			return "", errors.Join(errNoAxe, err)
		}
		path = filepath.Join(cache, axeFile)
	}
	text, err := os.ReadFile(path)
	if err != nil {
		return "", errors.Join(errNoAxe, err)
	}
	return string(text), nil
}
