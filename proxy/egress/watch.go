package egress

import (
	"crypto/tls"
	"log/slog"
	"sync"
	"sync/atomic"
	"time"

	"postern/proxy/redact"
)

// lookEvery is how often the TLS files of an endpoint in use are looked at, at most. They are small, and comparing what
// they hold sees every kind of replacement: in place, by renaming, and by the symbolic link of a mounted secret.
const lookEvery = 2 * time.Second

// watch finds out when an endpoint's TLS files hold something else. Nothing runs in the background: whoever sends looks.
type watch struct {
	tls   TLS
	every time.Duration
	log   *slog.Logger
	next  atomic.Int64 // when to look again, in nanoseconds since began
	began time.Time

	mu      sync.Mutex // guards what follows; held while the files are read
	files   texts      // in force
	trouble string     // why what the files hold now is not in force; empty if it is
	told    bool       // trouble is in the log
}

func newWatch(o Options, files texts) *watch {
	w := &watch{tls: o.TLS, every: o.lookEvery, log: o.Log, began: time.Now(), files: files}
	if w.every <= 0 {
		w.every = lookEvery
	}
	if w.log == nil {
		w.log = slog.New(slog.DiscardHandler)
	}
	w.next.Store(int64(w.every))
	return w
}

// look returns a new configuration where the files hold another one that is whole, else nil. A pair that is replaced in
// two steps does not fit in between: what is in force stays, and only if that lasts until the next look is it told.
func (w *watch) look() *tls.Config {
	if w.tls.CAFile == "" && w.tls.CertFile == "" {
		return nil
	}
	now, next := int64(time.Since(w.began)), w.next.Load()
	if now < next || !w.next.CompareAndSwap(next, now+int64(w.every)) {
		return nil
	}
	w.mu.Lock()
	defer w.mu.Unlock()
	files, err := w.tls.read()
	if err == nil && files == w.files {
		w.recoverLocked("the TLS files hold what is in force again")
		return nil
	}
	var cfg *tls.Config
	if err == nil {
		cfg, err = w.tls.config(files)
	}
	if err != nil {
		w.failLocked(err)
		return nil
	}
	w.files = files
	w.recoverLocked("")
	w.log.Info("the TLS files have changed; new connections use what they hold now")
	return cfg
}

func (w *watch) failLocked(err error) {
	if w.trouble != "" && !w.told {
		w.told = true
		w.log.Warn("the changed TLS files cannot be used; what was loaded before stays in force. Correct the files: they are read again by themselves",
			"error", err)
	}
	w.trouble = redact.Error(err)
}

func (w *watch) recoverLocked(message string) {
	if w.told && message != "" {
		w.log.Info(message)
	}
	w.trouble, w.told = "", false
}

// problem is why what the files hold is not in force; empty if it is.
func (w *watch) problem() string {
	w.mu.Lock()
	defer w.mu.Unlock()
	return w.trouble
}
