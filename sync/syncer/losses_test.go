package syncer

import (
	"regexp"
	"strconv"
	"strings"
	"testing"
	"testing/synctest"
	"time"

	"postern/sync/pgstore"
)

// TestDroppedRowsAreTold: at once, then seldom, and the rest at the end; what is carried or set apart is none of them.
func TestDroppedRowsAreTold(t *testing.T) {
	for name, away := range map[string]string{"from the start": "migrate", "later on": "write"} {
		t.Run(name, func(t *testing.T) {
			synctest.Test(t, func(t *testing.T) {
				b := start(t, func(b *bench) {
					b.outbox.add("a", "b", "c")
					b.store.fail = func(call string, _ []pgstore.Row) error {
						if call == away {
							return errAway
						}
						return nil
					}
				})
				said := func() string {
					return strings.Join(regexp.MustCompile(`for want of room.* rows=(\d+)`).FindAllString(b.log.String(), -1), " ")
				}
				pass(time.Minute)
				if said() != "" {
					t.Fatal("nothing was dropped yet: ", said())
				}
				for range 20 {
					b.outbox.add("more", "and more")
					b.outbox.drop(2)
					pass(time.Minute)
				}
				if n := strings.Count(said(), "for want of room"); n != 2 {
					t.Errorf("said %d times in 20 minutes: %s", n, said())
				}
				b.store.set(func() { b.store.fail = poisoned("more") })
				pass(time.Minute)
				total := 0
				for _, m := range regexp.MustCompile(`rows=(\d+)`).FindAllStringSubmatch(said(), -1) {
					n, _ := strconv.Atoi(m[1])
					total += n
				}
				if total != 40 || b.outbox.left() != 0 {
					t.Errorf("%d rows in all: %s; %d left", total, said(), b.outbox.left())
				}
				before := said()
				b.outbox.add("d", "more", "e")
				pass(time.Hour)
				b.outbox.add("f")
				pass(time.Hour)
				if said() != before {
					t.Errorf("said without cause: %s", said())
				}
				b.end()
			})
		})
	}
}
