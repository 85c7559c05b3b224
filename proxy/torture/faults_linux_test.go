package torture

import (
	"errors"
	"fmt"
	"math/rand/v2"
	"os"
	"os/exec"
	"path/filepath"
	"strings"
	"syscall"
	"time"

	"golang.org/x/sys/unix"
)

var systemFaults = []fault{
	{"descriptor limit", 4, nothing, fewDescriptors},
	{"memory limit", 3, nothing, littleMemory},
	{"writes refused", 4, nothing, writesRefused},
	{"slow fsync", 3, nothing, slowSync},
	{"failing fsync", 4, nothing, func(w *world, rnd *rand.Rand) error { return failingSync(w, rnd, "EIO") }},
	{"fsync without room", 2, smallDisk, func(w *world, rnd *rand.Rand) error { return failingSync(w, rnd, "ENOSPC") }},
	{"disk full and free again", 5, smallDisk, diskFull},
	{"SIGKILL on a full disk", 4, smallDisk, killedOnFullDisk},
	{"read-only remount", 3, smallDisk, readOnly},
}

// missing says what cannot be broken on this machine.
func missing() (names []string) {
	if _, err := exec.LookPath("strace"); err != nil {
		names = append(names, "slow and failing fsync (strace is not installed)")
	}
	if !canControl() {
		names = append(names, "a memory cgroup (GOMEMLIMIT alone is set)")
	}
	return names
}

// limited sets a resource limit of the running process for a while.
func limited(w *world, resource int, to uint64, fn func()) error {
	var usual unix.Rlimit
	if err := unix.Prlimit(w.process.pid(), resource, nil, &usual); err != nil {
		return err
	}
	if err := unix.Prlimit(w.process.pid(), resource, &unix.Rlimit{Cur: to, Max: usual.Max}, nil); err != nil {
		return err
	}
	fn()
	return unix.Prlimit(w.process.pid(), resource, &usual, nil)
}

func fewDescriptors(w *world, rnd *rand.Rand) error {
	between(rnd, 50*time.Millisecond, 300*time.Millisecond)
	used, err := os.ReadDir(fmt.Sprintf("/proc/%d/fd", w.process.pid()))
	if err != nil {
		return err
	}
	return limited(w, unix.RLIMIT_NOFILE, uint64(max(len(used)-rnd.IntN(6), 8)), func() { between(rnd, 300*time.Millisecond, 1200*time.Millisecond) })
}

func writesRefused(w *world, rnd *rand.Rand) error {
	between(rnd, 50*time.Millisecond, 300*time.Millisecond)
	err := limited(w, unix.RLIMIT_FSIZE, 0, func() { between(rnd, 100*time.Millisecond, 1200*time.Millisecond) })
	between(rnd, 50*time.Millisecond, 300*time.Millisecond)
	return err
}

func slowSync(w *world, rnd *rand.Rand) error {
	if _, err := exec.LookPath("strace"); err != nil {
		return nil
	}
	delay := time.Duration(5+rnd.IntN(150)) * time.Millisecond
	return traced(w, fmt.Sprintf("delay_exit=%d", delay.Microseconds()), func() { between(rnd, 500*time.Millisecond, 1500*time.Millisecond) })
}

// failingSync lets some syncs fail, so that commits fail whole, and commits whose meta page was written already.
func failingSync(w *world, rnd *rand.Rand, with string) error {
	if _, err := exec.LookPath("strace"); err != nil {
		return nil
	}
	inject := fmt.Sprintf("error=%s:when=%d+%d", with, 1+rnd.IntN(4), 1+rnd.IntN(5))
	err := traced(w, inject, func() { between(rnd, 300*time.Millisecond, 1000*time.Millisecond) })
	if err == nil && rnd.IntN(3) == 0 {
		w.process.kill()
		err = w.again()
	}
	return err
}

// cgroup is the parent of the memory group, where there is one that may be written.
const cgroup = "/sys/fs/cgroup/memory"

func canControl() bool {
	dir, err := os.MkdirTemp(cgroup, "postern-torture-")
	if err == nil {
		_, err = os.Stat(filepath.Join(dir, "memory.limit_in_bytes"))
		os.Remove(dir)
	}
	return err == nil
}

// littleMemory runs Postern for a while with a soft and a hard limit.
func littleMemory(w *world, rnd *rand.Rand) (err error) {
	if err := w.process.stop(); err != nil {
		return err
	}
	w.process.env = []string{"GOMEMLIMIT=20MiB"}
	err = w.again()
	w.process.env = nil
	if err != nil {
		return err
	}
	leave := func() error { return nil }
	if canControl() {
		if leave, err = enterGroup(w.process.pid(), 64<<20); err != nil {
			return err
		}
	}
	between(rnd, 500*time.Millisecond, 1500*time.Millisecond)
	if err := w.process.stop(); err != nil {
		return err
	}
	return errors.Join(leave(), w.again())
}

// enterGroup puts a process into a memory group of its own, which leave removes after its end.
func enterGroup(pid int, limit int64) (leave func() error, err error) {
	dir, err := os.MkdirTemp(cgroup, "postern-torture-")
	if err != nil {
		return nil, err
	}
	leave = func() error { return os.Remove(dir) }
	err = os.WriteFile(filepath.Join(dir, "memory.limit_in_bytes"), fmt.Append(nil, limit), 0)
	if err == nil {
		err = os.WriteFile(filepath.Join(dir, "cgroup.procs"), fmt.Append(nil, pid), 0)
	}
	return leave, err
}

// fill fills the disk while partners are down and big events come, so that what was allocated before is used up, too.
func (w *world) fill(rnd *rand.Rand) (junk string, err error) {
	for _, p := range w.partners {
		if err := p.set([]mode{refuses, hangs, fails}[rnd.IntN(3)]); err != nil {
			return "", err
		}
	}
	w.bulky.Store(true)
	between(rnd, 50*time.Millisecond, 300*time.Millisecond)
	return w.disk.Fill()
}

// free gives the room back.
func (w *world) free(junk string) error {
	w.bulky.Store(false)
	return os.Remove(junk)
}

func diskFull(w *world, rnd *rand.Rand) error {
	junk, err := w.fill(rnd)
	if err != nil {
		return err
	}
	between(rnd, 500*time.Millisecond, 2*time.Second)
	// Half of the partners are back before there is room.
	for _, i := range rnd.Perm(len(partnerNames))[:3] {
		if err := w.partners[partnerNames[i]].set(fine); err != nil {
			return err
		}
	}
	between(rnd, 50*time.Millisecond, 500*time.Millisecond)
	return w.free(junk)
}

func killedOnFullDisk(w *world, rnd *rand.Rand) error {
	junk, err := w.fill(rnd)
	if err != nil {
		return err
	}
	between(rnd, 100*time.Millisecond, 1500*time.Millisecond)
	w.process.kill()
	if err := errors.Join(w.process.checkSpool(), w.process.launch()); err != nil {
		return err
	}
	// On a full disk it is not ready, but it runs and delivers.
	between(rnd, 100*time.Millisecond, 800*time.Millisecond)
	if !w.process.running() {
		return fmt.Errorf("postern does not start on a full disk: code %d", w.process.code)
	}
	if err := w.free(junk); err != nil {
		return err
	}
	return w.process.awaitReady(30 * time.Second)
}

// readOnly remounts the disk while Postern is down, and finds the start refused with a text.
func readOnly(w *world, rnd *rand.Rand) error {
	between(rnd, 50*time.Millisecond, 300*time.Millisecond)
	if err := w.process.stop(); err != nil {
		return err
	}
	if err := w.disk.Remount(true); err != nil {
		return err
	}
	if err := w.process.launch(); err != nil {
		return err
	}
	select {
	case <-w.process.exited:
	case <-time.After(10 * time.Second):
		return errors.New("postern runs on a read-only disk")
	}
	log, err := os.ReadFile(w.process.log.Name())
	switch {
	case err != nil:
		return err
	case w.process.code != 1:
		return fmt.Errorf("exit code %d on a read-only disk", w.process.code)
	case !strings.Contains(string(log), "read-only"):
		return errors.New("nothing says that the disk is read-only")
	}
	if err := w.disk.Remount(false); err != nil {
		return err
	}
	return w.again()
}

// traced runs fn while strace changes what syncs do to the process: it is a static program, which no preloaded library
// reaches.
func traced(w *world, inject string, fn func()) error {
	cmd := exec.Command("strace", "-f", "-q", "-e", "trace=fdatasync,fsync", "-e", "inject=fdatasync,fsync:"+inject, "-o", "/dev/null", "-p", fmt.Sprint(w.process.pid()))
	if err := cmd.Start(); err != nil {
		return err
	}
	fn()
	if err := cmd.Process.Signal(syscall.SIGINT); err != nil {
		return err
	}
	_ = cmd.Wait() // it reports the signal
	return nil
}
