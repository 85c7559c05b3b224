package admin

import (
	"math"
	"net/http"
	"time"

	"postern/spool"
)

// Minutes gives the last hour minute by minute, oldest first, the present minute last; *spool.Spool does.
type Minutes interface {
	Minutes() []spool.MinuteStats
}

type activityJSON struct {
	// Delivered counts events, Failed attempts: both within the last 60 seconds, as far as whole minutes tell.
	Delivered float64      `json:"delivered_per_minute"`
	Failed    float64      `json:"failed_per_minute"`
	Minutes   []minuteJSON `json:"minutes"` // 60, the last of them not over yet
}

type minuteJSON struct {
	Start     *time.Time `json:"start"`
	Delivered int64      `json:"delivered"`
	Failed    int64      `json:"failed"`
}

func (h *Handler) activity(r *http.Request) (reply, error) {
	if _, err := parameters(r); err != nil {
		return reply{}, err
	}
	return reply{body: h.activityNow(time.Now())}, nil
}

func (h *Handler) activityNow(now time.Time) activityJSON {
	out := activityJSON{Minutes: []minuteJSON{}}
	if h.parts.Minutes == nil {
		return out
	}
	list := h.parts.Minutes.Minutes()
	for _, m := range list {
		out.Minutes = append(out.Minutes, minuteJSON{stamp(m.Start), m.Delivered, m.Failed})
	}
	out.Delivered = perMinute(list, now, func(m spool.MinuteStats) int64 { return m.Delivered })
	out.Failed = perMinute(list, now, func(m spool.MinuteStats) int64 { return m.Failed })
	return out
}

// perMinute counts the present minute whole, and of the one before the part that is less than 60 seconds ago, as if it
// had been even.
func perMinute(list []spool.MinuteStats, now time.Time, count func(spool.MinuteStats) int64) float64 {
	n := len(list)
	if n < 2 {
		return 0
	}
	gone := min(max(now.Sub(list[n-1].Start).Minutes(), 0), 1)
	sum := float64(count(list[n-1])) + (1-gone)*float64(count(list[n-2]))
	return math.Round(10*sum) / 10
}
