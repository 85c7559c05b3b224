package spool

import (
	"encoding/binary"
	"time"

	bolt "go.etcd.io/bbolt"

	"postern/spool/internal/layout"
)

// minuteRing holds the counts of the last hour by the minute.
type minuteRing [60]struct {
	minute int64 // since 1970
	stats  HourStats
}

func minuteOf(t time.Time) int64 { return t.Unix() / 60 }

// add counts for the minute of now. A slot that still holds an older minute is begun anew.
func (r *minuteRing) add(now time.Time, h HourStats) {
	if h == (HourStats{}) {
		return
	}
	slot := &r[minuteOf(now)%60]
	if slot.minute != minuteOf(now) {
		slot.minute, slot.stats = minuteOf(now), HourStats{}
	}
	slot.stats = slot.stats.plus(h)
}

// sum is what the last 60 minutes had, the present one included.
func (r *minuteRing) sum(now time.Time) (total HourStats) {
	this := minuteOf(now)
	for _, slot := range r {
		if slot.minute > this-60 && slot.minute <= this {
			total = total.plus(slot.stats)
		}
	}
	return total
}

// MinuteStats are the counts of one minute, which begins at Start.
type MinuteStats struct {
	Start time.Time
	HourStats
}

// Minutes returns the last hour minute by minute, oldest first; the last one is the present one, and not over yet.
func (s *Spool) Minutes() []MinuteStats {
	s.mu.Lock()
	defer s.mu.Unlock()
	this := minuteOf(s.now())
	out := make([]MinuteStats, 0, len(s.minutes))
	for minute := this - int64(len(s.minutes)) + 1; minute <= this; minute++ {
		out = append(out, MinuteStats{time.Unix(minute*60, 0), s.minutes.at(minute)})
	}
	return out
}

// at returns the counts of one minute.
func (r *minuteRing) at(minute int64) HourStats {
	if slot := r[minute%60]; slot.minute == minute {
		return slot.stats
	}
	return HourStats{}
}

func (h HourStats) plus(o HourStats) HourStats {
	return HourStats{Delivered: h.Delivered + o.Delivered, Failed: h.Failed + o.Failed, Duration: h.Duration + o.Duration}
}

// countMinute notes a result for the last hour's sums.
func (t *txn) countMinute(r *Result) {
	switch {
	case r.Verdict == VerdictDelivered:
		t.minute.Delivered++
		if r.Attempt != nil {
			t.minute.Duration += r.Attempt.Duration
		}
	case r.Attempt != nil:
		t.minute.Failed++
	}
}

func minuteKey(minute int64) []byte { return binary.BigEndian.AppendUint64(nil, uint64(minute)) }

func (t *txn) putMinute() {
	minute := minuteOf(t.now)
	t.s.mu.Lock()
	sum := t.s.minutes.at(minute).plus(t.minute)
	t.s.mu.Unlock()
	t.put(layout.Minutes, minuteKey(minute), encodeMinute(sum))
	// Each new minute takes the place of the one an hour ago.
	first, _ := t.bucket(layout.Minutes).Cursor().First()
	if len(first) == 8 && int64(binary.BigEndian.Uint64(first)) <= minute-60 {
		t.del(layout.Minutes, append([]byte(nil), first...))
	}
}

// loadMinutes fills the ring. A damaged minute counts as nothing.
func (r *minuteRing) load(tx *bolt.Tx) {
	c := tx.Bucket(layout.Minutes.Name()).Cursor()
	for k, v := c.First(); k != nil; k, v = c.Next() {
		stats, err := decodeMinute(v)
		if err != nil || len(k) != 8 {
			continue
		}
		minute := int64(binary.BigEndian.Uint64(k))
		slot := &r[uint64(minute)%60]
		if minute > slot.minute {
			slot.minute, slot.stats = minute, stats
		}
	}
}
