package bucket

import (
	"slices"
	"time"
)

// Bucket holds the limits of one endpoint and the record of its last sends. The zero value has no limits.
type Bucket struct {
	limits []Limit
	most   int // the largest N: how many sends the record keeps
	spacer spacer
	base   time.Time // what the record's times count from; carries the monotonic clock if its maker's time did
	sent   ring
}

// New returns a bucket that has sent nothing. Limits must be valid.
func New(limits []Limit, burst int, now time.Time) *Bucket {
	b := &Bucket{base: now}
	b.SetLimits(limits, burst, now)
	return b
}

// SetLimits puts other limits in force. The record stays, as far back as the old limits made it reach; what left while
// there was no limit is not in it.
func (b *Bucket) SetLimits(limits []Limit, burst int, now time.Time) {
	b.limits = slices.Clone(limits)
	b.most = 0
	if len(limits) == 0 {
		b.spacer = spacer{}
		return
	}
	for _, l := range limits {
		b.most = max(b.most, l.N)
	}
	fresh := b.spacer.limiter == nil
	b.spacer.set(shortest(limits), burst, now)
	if fresh {
		b.replay()
	}
}

// Limited tells whether there is any limit.
func (b *Bucket) Limited() bool { return len(b.limits) > 0 }

// Ask tells whether one more request may leave now, where out permits were given whose requests have not left yet:
// each of them may leave at any moment, and counts as leaving now. If not ok, at is the earliest time at which it may,
// or zero where only an end of the permits that are out can tell. Ask changes nothing.
func (b *Bucket) Ask(now time.Time, out int) (at time.Time, ok bool) {
	for _, l := range b.limits {
		free := l.N - out
		if free <= 0 {
			return time.Time{}, false
		}
		if b.sent.n < free {
			continue
		}
		at = later(at, b.time(b.sent.newest(free)).Add(l.window()))
	}
	if wait := b.spacer.wait(now); wait > 0 {
		at = later(at, now.Add(wait))
	}
	return at, !at.After(now)
}

// Take spends the spacing's token for a request that Ask allowed at the same time.
func (b *Bucket) Take(now time.Time) bool { return b.spacer.take(now) }

// Undo gives the token back: the request will not leave.
func (b *Bucket) Undo(now time.Time) { b.spacer.undo(now) }

// Sent records that a request was written to the wire at that time.
func (b *Bucket) Sent(at time.Time) {
	if !b.Limited() {
		return
	}
	t := b.offset(at)
	b.forget(t)
	b.sent.add(t, b.most)
}

// forget drops what no window can reach any more.
func (b *Bucket) forget(now int64) {
	b.sent.drop(b.sent.older(now - int64(b.longest())))
}

func (b *Bucket) longest() (d time.Duration) {
	for _, l := range b.limits {
		d = max(d, l.window())
	}
	return d
}

func (b *Bucket) offset(t time.Time) int64    { return int64(t.Sub(b.base)) }
func (b *Bucket) time(offset int64) time.Time { return b.base.Add(time.Duration(offset)) }

// Use is how far a limit is used up.
type Use struct {
	Limit
	Used int // requests that left in the window that ends now, and permits that are out
}

// Use returns how far each limit is used up.
func (b *Bucket) Use(now time.Time, out int) []Use {
	uses := make([]Use, len(b.limits))
	for i, l := range b.limits {
		recent := b.sent.n - b.sent.older(b.offset(now)-int64(l.window()))
		uses[i] = Use{Limit: l, Used: recent + out}
	}
	return uses
}
