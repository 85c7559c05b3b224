package spool

import (
	"context"
	"errors"
	"fmt"
	"os"
	"slices"
	"time"

	bolt "go.etcd.io/bbolt"

	"postern/spool/internal/disk"
	"postern/spool/internal/layout"
	"postern/spool/internal/pagefile"
)

// SalvageReport says what a salvage achieved.
type SalvageReport struct {
	Recovered int64  // events in the new file: waiting ones and dead letters
	Doubtful  int64  // of those, the events whose record was found and of which nothing tells whether they were delivered
	Lost      int64  // of what Unit says: what was acknowledged, is not finished, and could not be read; as many as Doubtful may be lost besides
	Estimate  bool   // Lost goes by what numbers are missing, and may be more or less than that, or pages are of different times
	SetAside  int64  // records that were found and cannot be decoded: they are kept apart in the new file, and count as lost too
	Unit      string // UnitEvents; where their number is unknown UnitPages, and where nothing at all could be read UnitFile
	Damage    string // the first fault that was met; empty where everything that hangs together could be read
	Pages     int64  // that had a fault, or could not be reached
	Kept      string // where the damaged file is now; empty where nothing was done
}

// The units of SalvageReport.Lost.
const (
	UnitEvents = "events"
	UnitPages  = "pages"
	UnitFile   = "file"
)

var (
	// errNothingFound means that a file has not one record that can be read.
	errNothingFound = errors.New("no record can be read")
	// errForeign means that it is somebody else's.
	errForeign = errors.New("another program's database")
)

// Salvage makes a new spool of what can be read of a damaged one, whether the damage shows or not, and keeps the damaged
// file beside it. No process may have the directory open.
func Salvage(dir string) (SalvageReport, error) {
	d, unlock, err := lockExisting(dir)
	if err != nil {
		return SalvageReport{}, err
	}
	defer unlock()
	if err := d.remove(salvageName); err != nil {
		return SalvageReport{}, err
	}
	return d.salvage(context.Background())
}

// salvage works in three steps. What hangs together is taken as it is. Only where that was not all, pages that nothing
// leads to are looked through as well: what they hold may be out of date, so it fills gaps and nothing but gaps. At last
// the indexes and counts are made anew.
func (d *directory) salvage(ctx context.Context) (SalvageReport, error) {
	f, err := pagefile.Open(d.file())
	if err != nil {
		return d.salvageNothing(err)
	}
	defer f.Close()
	db, err := createCopy(d.join(salvageName), 0)
	if err != nil {
		return SalvageReport{}, err
	}
	v := &salvager{f: f, used: d.wasUsed(), w: bulkWriter{db: db}, gaps: make(map[layout.Bucket]map[string][]byte)}
	report, err := v.run(ctx)
	if err == nil {
		err = db.Sync()
	}
	err = errors.Join(err, db.Close())
	switch {
	case errors.Is(err, errNothingFound):
		return d.startAnew(report)
	case errors.Is(err, errForeign):
		return report, errors.Join(d.foreign(), d.remove(salvageName))
	case err != nil:
		return report, errors.Join(err, d.remove(salvageName))
	}
	report.Kept, err = d.putInPlace(salvageName)
	return report, err
}

// salvageNothing sets a file aside of which not even the first page is there, or nothing is ours. How much was in it is
// unknown, but that something was.
func (d *directory) salvageNothing(cause error) (SalvageReport, error) {
	overwritten := isEmpty(cause) || errors.Is(cause, pagefile.ErrForeign)
	if !errors.Is(cause, pagefile.ErrTruncated) && !(overwritten && d.wasUsed()) {
		return SalvageReport{}, cause
	}
	return d.startAnew(SalvageReport{Lost: 1, Unit: UnitFile, Damage: cause.Error()})
}

// startAnew puts an empty spool in place, which remembers the loss: nothing can be read of the file, and it is kept.
func (d *directory) startAnew(report SalvageReport) (_ SalvageReport, err error) {
	if err := makeEmpty(d.join(salvageName), report.Lost); err != nil {
		return report, errors.Join(err, d.remove(salvageName))
	}
	report.Kept, err = d.putInPlace(salvageName)
	return report, err
}

func makeEmpty(path string, lost int64) error {
	db, err := createCopy(path, 0)
	if err != nil {
		return err
	}
	err = db.Update(func(tx *bolt.Tx) error {
		if err := makeBuckets(tx); err != nil {
			return err
		}
		c := counters{nextSeq: 1, nextEndpoint: 1, nextOutbox: 1, salvageLost: lost}
		return tx.Bucket(layout.Meta.Name()).Put(layout.KeyCounters, encodeCounters(&c))
	})
	if err == nil {
		err = db.Sync()
	}
	return errors.Join(err, db.Close())
}

func (d *directory) keptName() string {
	return d.file() + keptSuffix + time.Now().UTC().Format("20060102T150405.000000")
}

// putInPlace makes a salvaged file the spool. The damaged one gets a second name before, so that there is a spool.db at
// every moment: a crash in between leaves the damaged one, and the next Open salvages again.
func (d *directory) putInPlace(name string) (kept string, err error) {
	kept = d.keptName()
	if err := os.Link(d.file(), kept); err != nil {
		return "", fmt.Errorf("keep the damaged file: %w", err)
	}
	if err := os.Rename(d.join(name), d.file()); err != nil {
		return "", err
	}
	// Not a clean one, and nothing is known of what was noted; but the mark tells for ever that a spool was here.
	err = errors.Join(disk.SyncDir(d.path), d.writeMark(cleanName, make([]byte, notedAt+8)))
	return kept, errors.Join(err, d.remove(damagedName))
}

// salvager fills a new file.
type salvager struct {
	f      *pagefile.File
	w      bulkWriter
	used   bool // events were accepted here
	err    error
	found  int
	census census
	gaps   map[layout.Bucket]map[string][]byte
	// unsure tells that there are records for which nothing vouches: those below a root whose meta page is not valid, or
	// in a bucket of no known name.
	unsure bool
	torn   *pagefile.PageSet // pages with a fault whose records were in use
	// undecoded tells that payloads were passed over which cannot be decoded, in the hope of another version.
	undecoded bool
	// newIDs, where not nil, says that nothing is missing but the last commit: the IDs of its events that were found.
	newIDs map[string]bool
}

func (v *salvager) run(ctx context.Context) (report SalvageReport, err error) {
	walk, err := v.f.Walk(ctx, v.sure)
	damaged := walk.DamagedPages
	if v.unsure {
		damaged = max(damaged, 1)
	}
	v.torn = walk.Torn
	v.census.settle(&walk, v.f.MetaDamage() != nil)
	if err == nil && v.err == nil {
		switch {
		case damaged > 0:
			err = v.fillGaps(ctx)
		case v.f.MetaDamage() != nil:
			v.newIDs = make(map[string]bool)
			err = v.fillGaps(ctx)
		}
	}
	if err = errors.Join(err, v.err, v.w.close()); err != nil {
		return SalvageReport{}, err
	}
	if v.found == 0 && v.isForeign(&walk) {
		return SalvageReport{}, errForeign
	}
	if damaged > 0 {
		damaged += v.f.MissingPages()
	}
	if v.found == 0 && damaged > 0 {
		report, err = SalvageReport{Lost: int64(damaged), Unit: UnitPages, Estimate: true}, errNothingFound
	} else {
		report, err = v.finish(int64(damaged))
	}
	report.Damage, report.Pages = v.firstFault(walk), int64(damaged)
	return report, err
}

// isForeign tells a database of another program: its buckets have other names, and no record is one of ours. Where a spool
// was here, a damaged one of which nothing else is left has the better claim.
func (v *salvager) isForeign(walk *pagefile.Report) bool {
	if len(walk.Buckets) == 0 || v.used && walk.First != nil {
		return false
	}
	return !slices.ContainsFunc(walk.Buckets, func(name []byte) bool {
		_, ours := layout.ByName(name)
		return ours
	})
}

// firstFault says what was wrong, as far as the walk through the file tells.
func (v *salvager) firstFault(walk pagefile.Report) string {
	switch torn := v.f.MetaDamage(); {
	case walk.First != nil:
		return walk.First.Error()
	case torn != nil:
		return torn.Error()
	case v.unsure:
		return "no meta page is valid, or the name of a bucket is damaged"
	}
	return ""
}

func (v *salvager) finish(damaged int64) (report SalvageReport, err error) {
	r, err := rebuild(v.w.db.Update, damaged > 0)
	if err != nil {
		return report, err
	}
	err = v.w.db.Update(func(tx *bolt.Tx) error {
		report = v.census.compare(tx, r, damaged)
		report.SetAside = r.aside
		r.counters.salvageLost += report.Lost
		return tx.Bucket(layout.Meta.Name()).Put(layout.KeyCounters, encodeCounters(&r.counters))
	})
	return report, err
}

// sure takes an entry that hangs together with the root. The scan finds the doubtful ones again.
func (v *salvager) sure(e pagefile.Entry) bool {
	if e.Doubtful || len(e.Bucket) != 1 {
		v.unsure = v.unsure || e.Doubtful
		return true
	}
	id, ok := layout.ByName(e.Bucket[0])
	if !ok {
		v.unsure = true // a bucket whose name is damaged: its records are looked for by their kind
		return true
	}
	if _, ok := layout.Seq(e.Key); !ok && (bySeq(id) || id == layout.Aside) {
		return true // a length that lies: whose record it was is not known any more
	}
	v.census.note(id, e.Key, e.Value)
	if id == layout.Due || id == layout.IDs || id == layout.Expiry || id == layout.IdemQueue {
		return true // indexes are made anew
	}
	if id == layout.Meta && string(e.Key) == string(layout.KeyFormat) && len(e.Value) == 1 && e.Value[0] > layout.Format {
		v.err = ErrNewerFormat
		return false
	}
	v.put(id, e.Key, e.Value)
	return v.err == nil
}

func (v *salvager) put(id layout.Bucket, key, value []byte) {
	v.found++
	if v.err == nil {
		v.err = v.w.put(id, append([]byte(nil), key...), append([]byte(nil), value...))
	}
}
