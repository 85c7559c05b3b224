package torture

import (
	"cmp"
	"errors"
	"fmt"
	"math/rand/v2"
	"os"
	"path/filepath"
	"regexp"
	"slices"
	"testing"
	"time"

	"postern/proxy/stage"
	"postern/sync/pgtest"
)

// run is one run of many rounds.
type run struct {
	t      *testing.T
	seed   uint64
	dir    string
	faults []fault
	main   *world
	small  *world // nil where the machine has no small disks
	report report
	synced int // events of the main world that Postgres must have
}

// TestTorture breaks everything around Postern, round by round, in an order that the seed decides.
func TestTorture(t *testing.T) {
	t.Parallel()
	r := newRun(t)
	begin := time.Now()
	for n := 1; time.Since(begin) < *length; n++ {
		if err := r.round(n); err != nil {
			t.Errorf("seed %d, round %d: %v", r.seed, n, err)
			break
		}
	}
	if !t.Failed() {
		if err := r.finish(); err != nil {
			t.Errorf("seed %d, at the end: %v", r.seed, err)
		}
	}
	r.report.Seconds = time.Since(begin).Seconds()
	r.report.print(os.Stdout)
	if *result != "" {
		if err := r.report.write(*result); err != nil {
			t.Error(err)
		}
	}
}

func newRun(t *testing.T) *run {
	t.Helper()
	r := &run{t: t, seed: cmp.Or(*seed, rand.Uint64())}
	fmt.Printf("seed %d (again with SEED=%d)\n", r.seed, r.seed)
	dir, err := os.MkdirTemp(*keep, "torture-")
	if err != nil {
		t.Fatal(err)
	}
	r.dir = dir
	t.Cleanup(r.close) // however little of it was there when it failed
	if err := r.worlds(); err != nil {
		t.Fatal(err)
	}
	pattern, err := regexp.Compile(*only)
	if err != nil {
		t.Fatal(err)
	}
	for _, f := range faults {
		if pattern.MatchString(f.name) && (f.needs != smallDisk || r.small != nil) {
			r.faults = append(r.faults, f)
		}
	}
	if len(r.faults) == 0 {
		t.Fatalf("no fault matches %q", *only)
	}
	r.report = report{Date: time.Now().UTC().Format(time.DateOnly), Seed: r.seed, Missing: missing()}
	if r.main.serverDisk == nil {
		r.report.Missing = append(r.report.Missing, "the disk of Postgres, which a trigger stands for (that takes root, nsenter and setpriv)")
	}
	if r.small == nil {
		r.report.Missing = append(r.report.Missing, "full and read-only disks (this machine allows no mounts)")
	}
	for _, m := range r.report.Missing {
		fmt.Println("NOT BROKEN here:", m)
	}
	return r
}

// worlds starts one Postern on the real disk with a Postgres, and one on a small disk without.
func (r *run) worlds() (err error) {
	for _, sub := range []string{"main", "small", "disk", "postgres"} {
		if err := os.Mkdir(filepath.Join(r.dir, sub), 0o711); err != nil { // the server's user passes through
			return err
		}
	}
	if err := os.Chmod(r.dir, 0o711); err != nil {
		return err
	}
	server, serverDisk := startPostgres(r.t, filepath.Join(r.dir, "postgres"))
	main := filepath.Join(r.dir, "main")
	r.main, err = newWorld(main, filepath.Join(main, "data"), "", server, pgtest.On(r.t, server.DSN()))
	if err != nil {
		return err
	}
	r.main.serverDisk = serverDisk
	if err := r.main.process.start(); err != nil {
		return err
	}
	if err := r.main.judgePostgres(0); err != nil { // its tables are there
		return err
	}
	disk, err := smallDiskIn(filepath.Join(r.dir, "disk"))
	if errors.Is(err, stage.ErrNoDisk) {
		return nil
	}
	if err != nil {
		return err
	}
	r.small, err = newWorld(filepath.Join(r.dir, "small"), filepath.Join(disk.Path, "data"), ", history_max_bytes: 4MiB", nil, nil)
	if err != nil {
		return errors.Join(err, disk.Close())
	}
	r.small.disk = disk
	return r.small.process.start()
}

// smallDiskIn mounts an ext4 of 24 MiB, or a tmpfs where there are no loop devices.
func smallDiskIn(dir string) (*stage.Disk, error) {
	disk, err := stage.NewDisk(dir, stage.Loop, 24)
	if err != nil {
		fmt.Printf("no ext4 for the small disk, a tmpfs instead: %v\n", err)
		disk, err = stage.NewDisk(dir, stage.Tmpfs, 24)
	}
	return disk, err
}

// close ends everything, and keeps the folder of a run that failed.
func (r *run) close() {
	for _, w := range []*world{r.main, r.small} {
		if w != nil {
			if err := w.close(); err != nil {
				r.t.Error(err)
			}
		}
	}
	if r.t.Failed() {
		r.t.Logf("logs and spools are kept in %s", r.dir)
		return
	}
	if err := os.RemoveAll(r.dir); err != nil {
		r.t.Error(err)
	}
}

// choose picks the fault of a round by its weight.
func (r *run) choose(rnd *rand.Rand) fault {
	sum := 0
	for _, f := range r.faults {
		sum += f.weight
	}
	n := rnd.IntN(sum)
	i := slices.IndexFunc(r.faults, func(f fault) bool { n -= f.weight; return n < 0 })
	return r.faults[i]
}

// round breaks one thing under traffic, mends it, waits until all has settled, and judges.
func (r *run) round(n int) (err error) {
	rnd := rand.New(rand.NewPCG(r.seed, uint64(n)))
	f := r.choose(rnd)
	w := r.main
	if f.needs == smallDisk {
		w = r.small
	}
	defer func() {
		if err != nil {
			err = fmt.Errorf("%s: %w", f.name, err)
		}
	}()
	t := w.startTraffic(r.seed + uint64(n))
	err = w.chaos(rnd)
	if err == nil {
		err = f.run(w, rnd)
	}
	t.stop()
	if err != nil {
		return err
	}
	got, err := w.settleAndJudge()
	r.report.add(f.name, got)
	if w == r.main {
		r.synced += got.Delivered
		if err == nil && f.needs == postgres {
			err = w.judgePostgres(r.synced)
		}
	}
	return err
}

func (w *world) settleAndJudge() (tally, error) {
	recovery, err := w.heal()
	if err != nil {
		return tally{}, err
	}
	if err := w.repeat(w.judged + 1); err != nil {
		return tally{}, err
	}
	if _, err := w.heal(); err != nil {
		return tally{}, err
	}
	got, err := w.judge()
	got.Recovery = recovery
	return got, errors.Join(err, w.judgeLog())
}

// finish closes both in order and looks at what is on disk.
func (r *run) finish() error {
	if err := r.main.judgePostgres(r.synced); err != nil {
		return err
	}
	for _, w := range []*world{r.main, r.small} {
		if w == nil {
			continue
		}
		if err := errors.Join(w.process.stop(), w.process.checkSpool(), w.judgeLog()); err != nil {
			return err
		}
	}
	return nil
}
