package spool

import (
	"bytes"
	"fmt"
	"log/slog"
	"os"
	"path/filepath"
	"strings"
	"testing"
)

// TestOneMetaPage: where one meta page is gone, bbolt would go on with the other one. The last commit's events are there
// all the same, and nothing that was deleted or delivered comes back.
func TestOneMetaPage(t *testing.T) {
	for name, newest := range map[string]int{"the newest": 0, "the one before": 1} {
		t.Run(name, func(t *testing.T) {
			r := newRig(t, func(c *Config) { c.Outbox = true })
			keyed := func(id string) *Event {
				ev := event(id, endpointA, strings.Repeat(id, 100))
				ev.IdempotencyKey = "key of " + id
				return ev
			}
			for i := range 20 {
				r.append(keyed(fmt.Sprint(i)))
			}
			for i, l := range r.lease(endpointA, 20) {
				switch {
				case i < 5:
					r.finish(l, delivered(l))
				default:
					r.Release(l)
				}
			}
			for i := 5; i < 10; i++ {
				r.must(r.Delete(t.Context(), fmt.Sprint(i)))
			}
			r.append(keyed("last"))
			id, err := r.store.visibleID()
			r.must(err)
			file, err := os.ReadFile(r.dirOf().file())
			r.must(err)
			clear(page(file, (id+newest)%2)[:512])
			dir := t.TempDir()
			r.must(os.WriteFile(filepath.Join(dir, dbName), file, 0o600))
			r.must(os.WriteFile(filepath.Join(dir, cleanName), make([]byte, 16), 0o600))

			var log bytes.Buffer
			after := &rig{t: t, cfg: r.cfg}
			after.cfg.Dir, after.cfg.Logger = dir, slog.New(slog.NewTextHandler(&log, nil))
			if report, err := Check(dir); err != nil || len(report.Problems) != 1 {
				t.Errorf("check: %+v, %v", report, err)
			}
			after.open()
			if got, want := allPages(t, after.Spool, Query{State: StatePending}), "last 19 18 17 16 15 14 13 12 11 10"; got != want {
				t.Errorf("pending: %q, want %q", got, want)
			}
			if res := after.append(keyed("last")); !res.Duplicate {
				t.Errorf("the last one, sent again: %+v", res)
			}
			if st := after.Stats(); st.SalvageLost != 0 || st.Delivered != 5 || st.OutboxRows != 31 {
				t.Errorf("stats %+v", st)
			}
			if !strings.Contains(log.String(), "meta page") || strings.Count(log.String(), "\n") != 1 {
				t.Errorf("said:\n%s", log.String())
			}
			after.close()
			after.check()
		})
	}
}
