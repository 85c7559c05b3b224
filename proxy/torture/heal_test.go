package torture

import (
	"fmt"
	"time"
)

// settleLimit is how long everything may take to be delivered once nothing is broken any more.
const settleLimit = 40 * time.Second

// waiting is what Postern says is not finished.
type waiting struct {
	Pending    int
	Failed     int `json:"awaiting_retry"`
	InFlight   int `json:"in_flight"`
	DeadLetter int `json:"dead_letter"`
}

// heal mends everything around Postern and waits until all that it has is delivered: what a 410 paused is resumed, and
// dead letters are replayed, as an operator would. It returns how long that took.
func (w *world) heal() (time.Duration, error) {
	for _, p := range w.partners {
		if err := p.set(fine); err != nil {
			return 0, err
		}
	}
	begin := time.Now()
	if err := w.process.awaitReady(settleLimit); err != nil {
		return 0, err
	}
	var last waiting
	err := poll(settleLimit, "everything to be delivered", func() (bool, error) {
		if !w.process.running() {
			return false, fmt.Errorf("postern ended by itself with code %d", w.process.code)
		}
		if _, err := w.process.api("GET", "status", "", &last); err != nil {
			return false, nil
		}
		if last == (waiting{}) {
			return true, nil
		}
		return false, w.help(last)
	})
	if err != nil {
		return 0, fmt.Errorf("%w: %+v", err, last)
	}
	return time.Since(begin), nil
}

// help does what is a person's part.
func (w *world) help(left waiting) error {
	if left.DeadLetter == 0 && left.Pending+left.Failed == 0 {
		return nil
	}
	for _, name := range partnerNames {
		if name == adHoc {
			continue
		}
		if _, err := w.process.api("POST", "endpoints/"+name+"/resume", "", nil); err != nil {
			return err
		}
	}
	if left.DeadLetter == 0 {
		return nil
	}
	status, err := w.process.api("POST", "dead-letters/replay", "{}", nil)
	if err == nil && status >= 300 && status != 503 {
		err = fmt.Errorf("replay: status %d", status)
	}
	return err
}
