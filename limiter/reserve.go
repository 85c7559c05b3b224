package limiter

import "time"

// credit is the books of reserved sends. At any time the newest state that was handed out for storing covers ready,
// asked and the permits that are out: after a kill these count as sent.
type credit struct {
	ready int // on disk, free to be used
	asked int // handed out for storing, not known to be on disk
}

// Reserve returns the state to store, with n more sends reserved. When it is on disk, call Reserved with the same n.
// Where storing failed, call Reserve again. States must reach the disk in the order in which they were returned.
func (g *Gate) Reserve(n int, now time.Time) (state []byte) {
	g.seen(now)
	if g.bucket.Limited() {
		g.credit.asked = max(g.credit.asked, n)
	}
	return g.State()
}

// Reserved tells that the state that Reserve(n) returned is on disk: n more sends may leave.
func (g *Gate) Reserved(n int, now time.Time) {
	g.seen(now)
	n = min(max(n, 0), g.credit.asked)
	g.credit.asked -= n
	g.credit.ready += n
}

// GiveBack gives up the reserved sends that were not used, so that the State after it holds none: for a clean
// shutdown. Sends must be reserved anew before the next permit.
func (g *Gate) GiveBack() { g.credit = credit{} }

// reserved is how many sends may leave, or may have left, without a later state on disk that tells of them.
func (g *Gate) reserved() int { return g.credit.ready + g.credit.asked + g.flights.out }
