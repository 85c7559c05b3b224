package spool

import (
	"bytes"
	"context"
	"errors"
	"fmt"
	"os"
	"path/filepath"
	"slices"
	"strings"
	"sync"
	"testing"
	"time"

	bolt "go.etcd.io/bbolt"

	"postern/spool/internal/keyring"
	"postern/spool/internal/layout"
)

const endpointNamed = "partner-a"

// key returns the n-th key of a test.
func key(n int) []byte { return bytes.Repeat([]byte{byte(n), 0xa5}, keyring.KeySize/2) }

func withKeys(keys ...[]byte) func(*Config) {
	return func(cfg *Config) { cfg.Keys, cfg.Outbox, cfg.OutboxBodies = keys, true, true }
}

// secretEvent has something that nobody may read in each of its places.
func secretEvent(id string, named bool) *Event {
	ev := event(id, endpointA, "SECRET-body-"+id)
	ev.Target = endpointA + "/SECRET-path/?q=SECRET-query"
	if named {
		ev.Endpoint, ev.Named, ev.Target = endpointNamed, true, "/SECRET-path?q=SECRET-query"
	}
	ev.Headers = []Header{{"X-SECRET-name", "SECRET-value"}, {"Idempotency-Key", "SECRET-key-" + id}}
	ev.IdempotencyKey = "SECRET-key-" + id
	return ev
}

// failedWith is a result whose answer has something to hide.
func failedWith(l *Lease, v Verdict) Result {
	return Result{
		Attempt: attempt(l, 500), Verdict: v, Reason: ReasonExhausted, NextAttempt: time.Now(),
		Answer: &Answer{StatusCode: 500, Location: "https://SECRET-location.example", Body: []byte("SECRET-answer")},
	}
}

// play leaves an event in every state, ad hoc and named: pending, failed, dead, delivered; and a refused row.
func (r *rig) play() {
	r.t.Helper()
	for _, endpoint := range []string{endpointA, endpointNamed} {
		for _, state := range []string{"pending", "failed", "dead", "delivered"} {
			r.append(secretEvent(endpoint[:2]+state, endpoint == endpointNamed))
		}
		for _, l := range r.lease(endpoint, 4) {
			switch l.Event.ID[2:] {
			case "failed":
				r.finish(l, failedWith(l, VerdictRetry))
			case "dead":
				r.finish(l, failedWith(l, VerdictDead))
			case "delivered":
				r.finish(l, delivered(l))
			default:
				r.Release(l)
			}
		}
	}
	rows, _, err := r.Outbox(1)
	if err != nil || len(rows) != 1 {
		r.t.Fatal(rows, err)
	}
	r.must(r.OutboxRefuse(rows[0].Index, "no room"))
}

// played holds everything that play left to what it was.
func (r *rig) played() {
	r.t.Helper()
	for _, endpoint := range []string{endpointA, endpointNamed} {
		for _, state := range []string{"pending", "failed", "dead"} {
			id := endpoint[:2] + state
			want := secretEvent(id, endpoint == endpointNamed)
			v, err := r.Get(id, true)
			if err != nil || v.Target != want.Target || !slices.Equal(v.Headers, want.Headers) || !bytes.Equal(v.Body, want.Body) || v.Size != int64(len(want.Body)) {
				r.t.Fatalf("%s: %+v, %v", id, v, err)
			}
			if a := v.Answer; (a == nil) != (state == "pending") || a != nil && (string(a.Body) != "SECRET-answer" || a.StatusCode != 500) {
				r.t.Fatalf("%s: the kept answer is %+v", id, a)
			}
		}
	}
	page, err := r.List(Query{Limit: 100})
	if err != nil || len(page.Events) != 8 {
		r.t.Fatalf("listed: %+v, %v", page, err)
	}
	for _, v := range page.Events {
		if v.Named && v.State != StateDelivered && !strings.HasPrefix(v.Target, "/SECRET-path") {
			r.t.Errorf("%s is listed with the target %q", v.ID, v.Target)
		}
	}
	refused, n, err := r.Refused(10)
	if err != nil || n != 1 || string(refused[0].Body) != "SECRET-body-htpending" {
		r.t.Fatalf("refused: %+v, %d, %v", refused, n, err)
	}
	rows, _, err := r.Outbox(100)
	if err != nil || len(rows) != 13 {
		r.t.Fatalf("%d rows in the outbox, %v", len(rows), err)
	}
	if res := r.append(secretEvent(endpointA[:2]+"dead", false)); !res.Duplicate {
		r.t.Error("a twin is not recognised")
	}
}

// leaks returns what of the planted secrets can be read in the spool's files.
func leaks(t *testing.T, dir string) (found []string) {
	t.Helper()
	files, err := filepath.Glob(filepath.Join(dir, "*"))
	if err != nil || len(files) == 0 {
		t.Fatal(files, err)
	}
	for _, name := range files {
		data, err := os.ReadFile(name)
		if err != nil {
			t.Fatal(err)
		}
		for rest := data; ; {
			i := bytes.Index(rest, []byte("SECRET"))
			if i < 0 {
				break
			}
			found = append(found, fmt.Sprintf("%s: %q", filepath.Base(name), rest[i:min(i+20, len(rest))]))
			rest = rest[i+6:]
		}
	}
	return found
}

// rekeyed waits for the rewriting, and for the copy that follows it.
func (r *rig) rekeyed() {
	r.t.Helper()
	deadline := time.Now().Add(2 * time.Minute)
	for r.Keys().Rewriting || r.compaction.forced.Load() {
		if time.Now().After(deadline) {
			r.t.Fatalf("it does not end: %+v", r.Keys())
		}
		r.must(r.do(func(*txn) error { return nil }))
	}
}

func TestNothingReadableIsOnDisk(t *testing.T) {
	r := newRig(t, withKeys(key(1)))
	r.play()
	if found := leaks(t, r.cfg.Dir); len(found) > 0 {
		t.Errorf("while it runs: %q", found)
	}
	r.played()
	r.reopen()
	r.played()
	r.close()
	if found := leaks(t, r.cfg.Dir); len(found) > 0 {
		t.Errorf("afterwards: %q", found)
	}
	if report, err := Check(r.cfg.Dir); err != nil || len(report.Problems) > 0 || !slices.Equal(report.Keys, []string{keyring.IDOf(key(1)).String()}) {
		t.Errorf("a check without the key: %+v, %v", report, err)
	}
	// The search can find something at all.
	plain := newRig(t, withKeys())
	plain.play()
	if found := leaks(t, plain.cfg.Dir); len(found) < 20 {
		t.Errorf("without a key only this is readable: %q", found)
	}
}

func TestKeyMissing(t *testing.T) {
	r := newRig(t, withKeys(key(1)))
	r.play()
	r.close()
	before := mustRead(t, filepath.Join(r.cfg.Dir, dbName))
	for name, keys := range map[string][][]byte{"none": nil, "another": {key(2)}} {
		cfg := r.cfg
		cfg.Keys = keys
		_, err := Open(cfg)
		if !errors.Is(err, ErrKeyMissing) || !strings.Contains(err.Error(), keyring.IDOf(key(1)).String()) {
			t.Errorf("%s: %v", name, err)
		}
	}
	if !bytes.Equal(before, mustRead(t, filepath.Join(r.cfg.Dir, dbName))) {
		t.Error("a start without the key changed the file")
	}
	r.open()
	r.played()
	if err := errors.Join(r.CheckKeys(r.cfg.Keys), r.CheckKeys([][]byte{key(2), key(1)})); err != nil {
		t.Errorf("keys that would do: %v", err)
	}
	if err := r.CheckKeys(nil); !errors.Is(err, ErrKeyMissing) {
		t.Errorf("no keys would do: %v", err)
	}
	if err := r.SetKeys(context.Background(), [][]byte{key(2)}); !errors.Is(err, ErrKeyMissing) {
		t.Errorf("taking the key away while it is needed: %v", err)
	}
	if err := r.SetKeys(context.Background(), [][]byte{key(2), key(2)}); err == nil || !strings.Contains(err.Error(), "spool.encryption_key_files: key 2 is there twice") {
		t.Errorf("a key twice: %v", err)
	}
	r.played()
}

func mustRead(t *testing.T, name string) []byte {
	t.Helper()
	data, err := os.ReadFile(name)
	if err != nil {
		t.Fatal(err)
	}
	return data
}

// TestTurnedOn: a spool that was plain is rewritten, and nothing readable is left of what it was, not on free pages either.
func TestTurnedOn(t *testing.T) {
	r := newRig(t, withKeys())
	r.play()
	if err := r.SetKeys(context.Background(), [][]byte{key(1)}); err != nil {
		t.Fatal(err)
	}
	r.rekeyed()
	if st := r.Keys(); st.Newest != keyring.IDOf(key(1)).String() || !slices.Equal(st.InUse, []string{st.Newest}) {
		t.Errorf("keys: %+v", st)
	}
	if found := leaks(t, r.cfg.Dir); len(found) > 0 {
		t.Errorf("readable: %q", found)
	}
	r.cfg.Keys = [][]byte{key(1)}
	r.played()
	r.reopen()
	r.played()
}

func TestRotation(t *testing.T) {
	r := newRig(t, withKeys(key(1)))
	r.play()
	r.cfg.Keys = [][]byte{key(2), key(1)}
	r.reopen() // by a restart
	r.rekeyed()
	r.played()
	r.cfg.Keys = [][]byte{key(3), key(2)}
	if err := r.SetKeys(context.Background(), r.cfg.Keys); err != nil { // by a reload
		t.Fatal(err)
	}
	r.rekeyed()
	r.cfg.Keys = [][]byte{key(3)}
	if err := r.SetKeys(context.Background(), r.cfg.Keys); err != nil {
		t.Fatalf("the old key is not needed any more: %v", err)
	}
	r.played()
	r.reopen()
	r.played()
	r.close()
	r.check()
	old := r.cfg
	old.Keys = [][]byte{key(2)}
	if _, err := Open(old); !errors.Is(err, ErrKeyMissing) {
		t.Errorf("a retired key opens: %v", err)
	}
}

func TestRekeyOffline(t *testing.T) {
	r := newRig(t, withKeys(key(1)))
	r.play()
	if _, err := Rekey(r.cfg, false); !errors.Is(err, ErrInUse) {
		t.Errorf("of an open spool: %v", err)
	}
	r.close()
	r.cfg.Keys = [][]byte{key(2), key(1)}
	report, err := Rekey(r.cfg, false)
	if err != nil || report.Key != keyring.IDOf(key(2)).String() || report.Rewritten < 20 {
		t.Fatalf("%+v, %v", report, err)
	}
	r.cfg.Keys = [][]byte{key(2)}
	r.open()
	r.played()
	r.close()
	if report, err = Rekey(r.cfg, true); err != nil || report.Key != "none" {
		t.Fatalf("back to plain: %+v, %v", report, err)
	}
	r.cfg.Keys = nil
	r.open()
	r.played()
	if _, err := Rekey(Config{Dir: t.TempDir()}, false); err == nil {
		t.Error("a configuration that cannot work is taken")
	}
	cfg := r.cfg
	cfg.Dir = t.TempDir()
	if _, err := Rekey(cfg, false); err == nil || !strings.Contains(err.Error(), "has no spool") {
		t.Errorf("of nothing: %v", err)
	}
}

// TestRekeyUnderLoad: events come and go while everything is rewritten, twice.
func TestRekeyUnderLoad(t *testing.T) {
	t.Parallel()
	r := newRig(t, withKeys(key(1)))
	for i := range 3000 {
		r.queueOnly(secretEvent(fmt.Sprint("old", i), i%2 == 0))
	}
	r.must(r.do(func(*txn) error { return nil }))
	ctx, stop := context.WithCancel(t.Context())
	var wg sync.WaitGroup
	var accepted [4]int
	for g := range accepted {
		wg.Go(func() {
			for ctx.Err() == nil {
				ev := secretEvent(fmt.Sprintf("new%d-%d", g, accepted[g]), g%2 == 0)
				if _, err := r.Append(context.Background(), ev); err != nil {
					t.Error(err)
					return
				}
				accepted[g]++
			}
		})
	}
	wg.Go(func() {
		for ctx.Err() == nil {
			for _, l := range r.lease(endpointA, 20) {
				if string(l.Event.Body) != "SECRET-body-"+l.Event.ID {
					t.Errorf("%s has the body %q", l.Event.ID, l.Event.Body)
				}
				r.finish(l, failedWith(l, VerdictRetry))
			}
		}
	})
	for n := 2; n <= 3; n++ {
		r.cfg.Keys = append([][]byte{key(n)}, r.cfg.Keys...)
		r.must(r.SetKeys(context.Background(), r.cfg.Keys))
	}
	for r.Keys().Rewriting {
		r.must(r.do(func(*txn) error { return nil }))
	}
	stop()
	wg.Wait()
	r.cfg.Keys = r.cfg.Keys[:1]
	r.reopen()
	total := 3000
	for _, n := range accepted {
		total += n
	}
	leases := append(r.lease(endpointA, total), r.lease(endpointNamed, total)...)
	if len(leases) != total {
		t.Errorf("%d events are there, %d were accepted", len(leases), total)
	}
	for _, l := range leases {
		r.Release(l)
	}
}

// queueOnly appends without waiting.
func (r *rig) queueOnly(ev *Event) {
	ring := r.ring()
	op := &appendOp{ev: ev, ring: ring, rec: encodeEvent(ev, ring)}
	if _, err := r.queue.add(op); err != nil {
		r.t.Fatal(err)
	}
}

// TestMovedParts: what was sealed for one event does not open for another, even where every checksum is right.
func TestMovedParts(t *testing.T) {
	r := newRig(t, withKeys(key(1)))
	r.append(secretEvent("a", false))
	r.append(secretEvent("b", false))
	r.must(r.do(func(t *txn) error {
		a, b := layout.SeqKey(1), layout.SeqKey(2)
		ra, _ := splitEvent(t.get(layout.Events, a))
		rb := slices.Clone(t.get(layout.Events, b))
		sb, _ := splitEvent(rb)
		copy(sb.body, ra.body) // the same length
		e := layout.NewEncoder(nil, layout.KindEvent)
		e.Seal()
		e.Raw(rb[e.Len():])
		t.put(layout.Events, b, e.Record())
		return nil
	}))
	leases := r.lease(endpointA, 10)
	if len(leases) != 1 || leases[0].Event.ID != "a" {
		t.Fatalf("leased: %+v", leases)
	}
	r.must(r.do(func(*txn) error { return nil }))
	if st := r.Stats(); st.SetAside != 1 {
		t.Errorf("%d events were set aside", st.SetAside)
	}
}

// TestNoteOfKeysIsLost: which keys are needed is found out again from the records.
func TestNoteOfKeysIsLost(t *testing.T) {
	r := newRig(t, withKeys(key(1)))
	r.play()
	r.must(r.do(func(t *txn) error {
		t.put(layout.Meta, layout.KeyKeys, []byte("nonsense"))
		return nil
	}))
	r.close()
	cfg := r.cfg
	cfg.Keys = nil
	if _, err := Open(cfg); !errors.Is(err, ErrKeyMissing) {
		t.Errorf("without the key: %v", err)
	}
	r.open()
	r.played()
}

// TestSalvageNeedsNoKey: a damaged spool is salvaged without its key, and opens with it alone.
func TestSalvageNeedsNoKey(t *testing.T) {
	r := newRig(t, withKeys(key(1)))
	r.play()
	r.close()
	if report, err := Salvage(r.cfg.Dir); err != nil || report.Recovered != 6 || report.Lost != 0 {
		t.Fatalf("%+v, %v", report, err)
	}
	cfg := r.cfg
	cfg.Keys = nil
	if _, err := Open(cfg); !errors.Is(err, ErrKeyMissing) {
		t.Errorf("without the key: %v", err)
	}
	r.open()
	r.played()
}

// TestFormerFormat: a spool of the first format is taken over, and marked so that its first owner refuses it from then on.
func TestFormerFormat(t *testing.T) {
	r := newRig(t, withKeys())
	r.play()
	r.must(r.do(func(t *txn) error {
		t.put(layout.Meta, layout.KeyFormat, []byte{1})
		t.del(layout.Meta, layout.KeyKeys)
		return nil
	}))
	r.close()
	r.rewrite(func(tx *bolt.Tx) error { return tx.Bucket(layout.Meta.Name()).Put(layout.KeyFormat, []byte{1}) })
	r.cfg.Keys = [][]byte{key(1)}
	r.open()
	r.must(r.store.view(func(tx *bolt.Tx) error {
		if got := tx.Bucket(layout.Meta.Name()).Get(layout.KeyFormat); !bytes.Equal(got, []byte{layout.Format}) {
			t.Errorf("the format is %v", got)
		}
		return nil
	}))
	r.rekeyed()
	r.played()
}

// rewrite changes the closed file.
func (r *rig) rewrite(fn func(*bolt.Tx) error) {
	r.t.Helper()
	db, err := bolt.Open(filepath.Join(r.cfg.Dir, dbName), 0o600, nil)
	if err == nil {
		err = errors.Join(db.Update(fn), db.Close())
	}
	if err != nil {
		r.t.Fatal(err)
	}
}

// TestRekeyWaitsForRoom: a full spool goes on with both keys, and is rewritten when there is room.
func TestRekeyWaitsForRoom(t *testing.T) {
	t.Parallel()
	r := newRig(t, withKeys(), func(cfg *Config) { cfg.MaxBytes, cfg.MaxEndpointShare = 4*mib, 1 })
	r.fill(endpointA, 600)
	r.must(r.SetKeys(context.Background(), [][]byte{key(1)}))
	r.cfg.Keys = [][]byte{key(1)}
	if _, _, err := r.rekeyPass(); !errors.Is(err, errNoRoomToRekey) {
		t.Fatalf("a full spool is rewritten: %v", err)
	}
	if st := r.Keys(); !st.Rewriting || len(st.InUse) != 2 {
		t.Errorf("keys: %+v", st)
	}
	for _, l := range r.lease(endpointA, 100_000) {
		r.Finish(l, delivered(l))
	}
	for r.Keys().Rewriting { // the copy does not fit beside a file of the smallest size that was full
		r.must(r.do(func(*txn) error { return nil }))
	}
	if st := r.Keys(); len(st.InUse) != 1 {
		t.Errorf("keys: %+v", st)
	}
}
