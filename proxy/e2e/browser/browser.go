// Package browser gives tests a real Chromium.
//
// It promises a fresh browser for each call, with an empty profile, that reaches nothing but this machine (names under
// .example and .test lead to 127.0.0.1, all other names lead nowhere), and that neither a process nor a folder is left
// when the test ends. A page is driven with chromedp, through the context that Start returns. It leaves out what pages
// are to do.
//
// Without a Chromium the test is skipped on a developer's machine, where make test says so aloud, and fails where CI is
// set: a check that cannot run must not look like one that passed.
package browser

import (
	"context"
	"errors"
	"io/fs"
	"os"
	"os/exec"
	"path/filepath"
	"strings"
	"testing"
	"time"

	"github.com/chromedp/chromedp"
)

// Env names a Chromium that is not in the usual places.
const Env = "POSTERN_TEST_CHROMIUM"

// errMissing says how to get one.
var errMissing = errors.New("no Chromium was found: install one (apt-get install chromium), or name its program in " + Env + "; .ci/chromium does it")

// limit bounds all that a test does with its browser; the first start on a busy machine alone may take ten seconds.
const limit = 4 * time.Minute

// Find returns the program: the one in POSTERN_TEST_CHROMIUM, else the first of the usual names in PATH.
func Find() (string, error) {
	if path := os.Getenv(Env); path != "" {
		return path, nil
	}
	for _, name := range []string{"chromium", "chromium-browser", "google-chrome", "chrome", "headless-shell"} {
		if path, err := exec.LookPath(name); err == nil {
			return path, nil
		}
	}
	return "", errMissing
}

// Start runs a browser until the test ends, and returns the context of its first tab. flags are more of Chromium's own,
// as name or name=value, without the dashes.
func Start(t testing.TB, flags ...string) context.Context {
	t.Helper()
	path, err := Find()
	if err != nil {
		if os.Getenv("CI") != "" {
			t.Fatal(err)
		}
		t.Skip(err)
	}
	profile, err := os.MkdirTemp("", "postern-browser-")
	if err != nil {
		t.Fatal(err)
	}
	ctx, cancel := context.WithTimeout(context.Background(), limit)
	ctx, endAll := chromedp.NewExecAllocator(ctx, options(path, profile, flags)...)
	ctx, endTab := chromedp.NewContext(ctx)
	t.Cleanup(func() {
		// Asked to close, Chromium ends its children itself; killed, it would leave them to write into the profile.
		if err := chromedp.Cancel(ctx); err != nil {
			t.Logf("close Chromium: %v", err)
		}
		endTab()
		endAll()
		chromedp.FromContext(ctx).Allocator.Wait()
		cancel()
		clean(t, profile)
	})
	if err := chromedp.Do(ctx); err != nil {
		t.Fatalf("start %s: %v", path, err)
	}
	return ctx
}

// options are Chromium's flags: no window, nothing asked of anybody by itself, and no name that leads off this machine.
// Root, whom containers run tests as, has no sandbox.
func options(path, profile string, flags []string) []chromedp.ExecAllocatorOption {
	all := append([]string{
		"headless", "no-sandbox", "disable-gpu", "disable-quic", "no-first-run", "no-default-browser-check",
		"disable-background-networking", "disable-component-update", "disable-sync", "disable-breakpad",
		"disable-default-apps", "disable-extensions", "disable-dev-shm-usage", "disable-popup-blocking", "password-store=basic", "no-proxy-server",
		"host-resolver-rules=MAP *.example 127.0.0.1, MAP *.test 127.0.0.1, MAP * ~NOTFOUND, EXCLUDE localhost, EXCLUDE 127.0.0.1",
	}, flags...)
	chosen := []chromedp.ExecAllocatorOption{
		chromedp.ExecPath(path), chromedp.UserDataDir(profile),
		// The handler of crashes keeps its files under the home folder, whatever the profile.
		chromedp.Env("HOME="+profile, "XDG_CONFIG_HOME="+profile, "XDG_CACHE_HOME="+profile),
	}
	for _, flag := range all {
		name, value, has := strings.Cut(flag, "=")
		if has {
			chosen = append(chosen, chromedp.Flag(name, value))
		} else {
			chosen = append(chosen, chromedp.Flag(name, true))
		}
	}
	return chosen
}

// clean removes the profile, and fails the test where a process still uses it.
func clean(t testing.TB, profile string) {
	deadline := time.Now().Add(2 * time.Minute)
	tick := time.NewTicker(20 * time.Millisecond)
	defer tick.Stop()
	for ; ; <-tick.C {
		left := using(profile)
		err := os.RemoveAll(profile)
		if _, still := os.Stat(profile); left == 0 && err == nil && errors.Is(still, fs.ErrNotExist) {
			return
		}
		if time.Now().After(deadline) {
			t.Errorf("%d processes of Chromium are left in %s: %v", left, profile, err)
			return
		}
	}
}

// using counts the processes that name the profile on their command line: all of Chromium's do. Where there is no
// /proc it finds none.
func using(profile string) (n int) {
	lines, _ := filepath.Glob("/proc/[0-9]*/cmdline")
	for _, line := range lines {
		if text, err := os.ReadFile(line); err == nil && strings.Contains(string(text), profile) {
			n++
		}
	}
	return n
}
