package guard

import (
	"bytes"
	"os"
	"sync"
	"time"
)

// tokenFile reads the tokens of a listener anew when its file changes: one per line, so that a token can be rotated
// without a gap. A file that cannot be read leaves the tokens as they were.
type tokenFile struct {
	path string

	mu      sync.Mutex // guards what follows
	last    [][]byte
	checked time.Time
	changed time.Time
}

// tokenEvery is how often the file is looked at, at most.
const tokenEvery = time.Second

// TokenFile gives Config.Tokens from a file. last is what it held when it was read, if it was.
func TokenFile(path string, last ...[]byte) func() [][]byte {
	return (&tokenFile{path: path, last: last}).tokens
}

func (f *tokenFile) tokens() [][]byte {
	f.mu.Lock()
	defer f.mu.Unlock()
	if time.Since(f.checked) < tokenEvery {
		return f.last
	}
	f.checked = time.Now()
	info, err := os.Stat(f.path)
	if err != nil || !info.Mode().IsRegular() || info.ModTime().Equal(f.changed) { // a pipe would hold up every request
		return f.last
	}
	text, err := os.ReadFile(f.path)
	if tokens := bytes.Fields(text); err == nil && len(tokens) > 0 {
		f.last, f.changed = tokens, info.ModTime()
	}
	return f.last
}

// Headers are what every answer of a listener that browsers reach should have: nothing of it is kept, framed, guessed at
// or handed to another site, and it runs nothing. A page sets a policy of its own afterwards.
var Headers = map[string]string{
	"Cache-Control":                "no-store",
	"Content-Security-Policy":      "default-src 'none'; base-uri 'none'; form-action 'none'; frame-ancestors 'none'",
	"Cross-Origin-Resource-Policy": "same-origin",
	"Referrer-Policy":              "no-referrer",
	"X-Content-Type-Options":       "nosniff",
}
