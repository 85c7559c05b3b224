package torture

import (
	"math/rand/v2"
	"os"
	"slices"
	"strings"
	"sync"
	"syscall"
	"time"

	"postern/proxy/stage"
)

// fault is one way in which something breaks. run breaks it while clients post, and mends it; Postern runs afterwards.
type fault struct {
	name   string
	weight int // how often it is chosen
	needs  need
	run    func(w *world, rnd *rand.Rand) error
}

// need says what a fault cannot do without.
type need int

const (
	nothing need = iota
	smallDisk
	postgres
)

var faults = slices.Concat(processFaults, partnerFaults(), systemFaults, postgresFaults)

var processFaults = []fault{
	{"SIGKILL", 40, nothing, killed},
	{"SIGKILL while starting", 8, nothing, killedWhileStarting},
	{"SIGKILL while stopping", 8, nothing, killedWhileStopping},
	{"SIGTERM", 6, nothing, stopped},
	{"SIGSTOP", 5, nothing, frozen},
	{"configuration reloaded, good and bad", 4, nothing, reloaded},
	{"clock jumps", 4, nothing, clockJumps},
}

// between waits for a time within these bounds.
func between(rnd *rand.Rand, least, most time.Duration) {
	time.Sleep(least + time.Duration(rnd.Int64N(int64(most-least))))
}

// again checks the closed spool and starts Postern on it.
func (w *world) again() error {
	if err := w.process.checkSpool(); err != nil {
		return err
	}
	return w.process.start()
}

func killed(w *world, rnd *rand.Rand) error {
	between(rnd, 20*time.Millisecond, 700*time.Millisecond)
	w.process.kill()
	return w.again()
}

func killedWhileStarting(w *world, rnd *rand.Rand) error {
	between(rnd, 20*time.Millisecond, 300*time.Millisecond)
	w.process.kill()
	for range 3 {
		if err := w.process.launch(); err != nil {
			return err
		}
		between(rnd, 0, 80*time.Millisecond)
		w.process.kill()
		if err := w.process.checkSpool(); err != nil {
			return err
		}
	}
	return w.process.start()
}

func killedWhileStopping(w *world, rnd *rand.Rand) error {
	between(rnd, 50*time.Millisecond, 400*time.Millisecond)
	if err := w.process.cmd.Process.Signal(syscall.SIGTERM); err != nil {
		return err
	}
	between(rnd, 0, 100*time.Millisecond)
	w.process.kill()
	return w.again()
}

func stopped(w *world, rnd *rand.Rand) error {
	between(rnd, 50*time.Millisecond, 500*time.Millisecond)
	if err := w.process.stop(); err != nil {
		return err
	}
	return w.again()
}

func frozen(w *world, rnd *rand.Rand) error {
	between(rnd, 50*time.Millisecond, 300*time.Millisecond)
	if err := w.process.cmd.Process.Signal(syscall.SIGSTOP); err != nil {
		return err
	}
	between(rnd, 500*time.Millisecond, 3*time.Second)
	err := w.process.cmd.Process.Signal(syscall.SIGCONT)
	between(rnd, 100*time.Millisecond, 200*time.Millisecond)
	return err
}

func reloaded(w *world, rnd *rand.Rand) error {
	for range 4 + rnd.IntN(4) {
		bad := []string{"", "query_keys_in_logs: [cid]\n", "nonsense: 1\n", "log: { level: loud }\n", "\t- ["}[rnd.IntN(5)]
		if err := w.reload(bad); err != nil {
			return err
		}
		between(rnd, 20*time.Millisecond, 150*time.Millisecond)
	}
	return w.reload("")
}

func (w *world) reload(extra string) error {
	if err := w.configure(extra); err != nil {
		return err
	}
	return w.process.cmd.Process.Signal(syscall.SIGHUP)
}

// withClock is the build whose wall clock can be set.
var withClock = sync.OnceValues(func() (string, error) {
	dir := strings.TrimSuffix(binary, "postern") + "clock"
	if err := os.Mkdir(dir, 0o700); err != nil {
		return "", err
	}
	return stage.BuildWithClock(dir)
})

// clockJumps runs the build with a clock for a while, sets it forwards and back by up to an hour, kills it at another
// time than the machine's, and goes on with the usual build and the machine's time.
func clockJumps(w *world, rnd *rand.Rand) error {
	program, err := withClock()
	if err != nil {
		return err
	}
	if err := w.process.stop(); err != nil {
		return err
	}
	file := w.dir + "/clock"
	w.process.program, w.process.env = program, []string{stage.ClockEnv + "=" + file}
	defer func() { w.process.program, w.process.env = binary, nil }()
	if err := w.again(); err != nil {
		return err
	}
	for range 3 {
		between(rnd, 50*time.Millisecond, 300*time.Millisecond)
		// By less than a minute nothing is brought forward: then an event waits for that long.
		step := time.Duration(120+rnd.IntN(3480)) * time.Second * time.Duration(1-2*rnd.IntN(2))
		if err := stage.SetClock(file, step); err != nil {
			return err
		}
		if err := w.process.cmd.Process.Signal(syscall.SIGUSR1); err != nil {
			return err
		}
		if err := poll(time.Minute, "the clock to be set", func() (bool, error) { return stage.ClockIsSet(file), nil }); err != nil {
			return err
		}
	}
	between(rnd, 50*time.Millisecond, 300*time.Millisecond)
	w.process.kill()
	w.process.program, w.process.env = binary, nil
	err = w.again()
	w.limitsOf = time.Now().Add(2 * limitWindow) // a clock that was set between two runs voids what a limit remembers
	return err
}

// partnerFaults has each bad mode on a few partners at once.
func partnerFaults() (all []fault) {
	for _, m := range badModes {
		all = append(all, fault{"partner " + string(m), 2, nothing, func(w *world, rnd *rand.Rand) error {
			for _, i := range rnd.Perm(len(partnerNames))[:3] {
				if err := w.partners[partnerNames[i]].set(m); err != nil {
					return err
				}
			}
			between(rnd, 300*time.Millisecond, 1500*time.Millisecond)
			return nil
		}})
	}
	return append(all, fault{"partner " + string(expires), 2, nothing, func(w *world, rnd *rand.Rand) error {
		err := w.partners["secure"].set(expires)
		between(rnd, 300*time.Millisecond, 1500*time.Millisecond)
		return err
	}})
}

// chaos gives some partners a bad mode, so that what else breaks meets retries, breakers and dead letters.
func (w *world) chaos(rnd *rand.Rand) error {
	if rnd.IntN(5) < 2 {
		return nil
	}
	for _, i := range rnd.Perm(len(partnerNames))[:1+rnd.IntN(3)] {
		if err := w.partners[partnerNames[i]].set(badModes[rnd.IntN(len(badModes))]); err != nil {
			return err
		}
	}
	return nil
}
