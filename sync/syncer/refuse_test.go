package syncer

import (
	"fmt"
	"strings"
	"testing"
	"testing/synctest"
	"time"

	"postern/sync/pgstore"
)

// TestAStoreThatRefusesEverything is no matter of rows: they stay where they are.
func TestAStoreThatRefusesEverything(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		b := start(t)
		b.store.set(func() { b.store.fail = func(string, []pgstore.Row) error { return errData } })
		for i := range 90 {
			b.outbox.add(fmt.Sprint(i))
		}
		pass(time.Minute)
		if len(b.outbox.apart()) != 0 || b.outbox.left() != 90 {
			t.Errorf("%d refused, %d left", len(b.outbox.apart()), b.outbox.left())
		}
		if st := b.Status(); st.Error == nil || !strings.Contains(*st.Error, "every row is refused") {
			t.Errorf("status %+v", st)
		}
		b.store.set(func() { b.store.fail = poisoned("5") })
		pass(backoffCap)
		if len(b.outbox.apart()) != 1 || b.outbox.left() != 0 {
			t.Errorf("afterwards %d refused, %d left", len(b.outbox.apart()), b.outbox.left())
		}
		b.end()
	})
}

// TestWhatARefusingStoreGetsSetApart: where rows come one by one and each is refused, no more than a few are set apart.
func TestWhatARefusingStoreGetsSetApart(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		b := start(t, func(b *bench) { b.parts.Snapshot = func() Snapshot { return Snapshot{} } })
		b.store.set(func() {
			b.store.fail = func(call string, _ []pgstore.Row) error {
				if call == "write" {
					return errData
				}
				return nil
			}
		})
		for i := range 70 {
			b.outbox.add(fmt.Sprint(i))
			pass(2 * time.Second)
		}
		if n := len(b.outbox.apart()); n != maxRefusedInARow || b.outbox.left() != 70-maxRefusedInARow {
			t.Errorf("%d set apart, %d left", n, b.outbox.left())
		}
		beats := len(b.store.seen().beats)
		pass(10 * time.Minute)
		if n := len(b.store.seen().beats) - beats; n < 5 {
			t.Errorf("%d heartbeats in ten minutes of refusals: it counts as gone", n)
		}
		b.store.set(func() { b.store.fail = nil })
		pass(backoffCap)
		if b.outbox.left() != 0 {
			t.Errorf("%d left afterwards", b.outbox.left())
		}
		b.end()
	})
}
