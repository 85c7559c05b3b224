package spool

import (
	"context"
	"errors"
	"fmt"
	"io/fs"
	"log/slog"
	"os"
	"path/filepath"

	"postern/spool/internal/pagefile"
)

// prepare leaves a file that bbolt can be trusted with, or none.
func (d *directory) prepare(cfg Config) error {
	if err := d.refuses(); err != nil {
		return err
	}
	if err := d.remove(compactName, salvageName); err != nil {
		return fmt.Errorf("remove what an earlier run left: %w", err)
	}
	if !d.has(dbName) {
		if d.has(cleanName) || d.has(damagedName) {
			cfg.Logger.Warn("the spool's file is gone, and events were accepted in it: an empty one takes its place. "+
				"Unless you moved it away, put it back and restart: nothing of it is delivered meanwhile", slog.String("file", d.file()))
		}
		// What is said of a file that somebody moved away must not be taken for the next one's.
		return d.remove(cleanName, damagedName)
	}
	fault, err := d.inspect(context.Background())
	switch {
	case errors.Is(err, errNeverUsed):
		return d.remove(dbName)
	case err != nil || fault == nil:
		return err
	}
	report, err := d.salvage(context.Background())
	if err != nil {
		return fmt.Errorf("salvage %s (%w): %w: move the file away to start with an empty spool", d.file(), fault, err)
	}
	cfg.Logger.Error("the spool's file was damaged: what could be read was salvaged into a new one",
		slog.Any("damage", fault), slog.Int64("recovered", report.Recovered), slog.Int64("doubtful", report.Doubtful), slog.Int64("lost", report.Lost),
		slog.String("lost_unit", report.Unit), slog.Bool("estimate", report.Estimate), slog.Int64("set_aside", report.SetAside), slog.String("kept", report.Kept))
	return nil
}

// inspect returns the fault for which the file must be salvaged, or nil. Nothing is read of a file that is still as a
// clean close left it. Nothing is changed.
func (d *directory) inspect(ctx context.Context) (fault, err error) {
	info, err := os.Lstat(d.file())
	switch {
	case errors.Is(err, fs.ErrNotExist):
		return nil, nil
	case err != nil:
		return nil, fmt.Errorf("the spool cannot be opened: %w", err)
	case !info.Mode().IsRegular():
		return nil, d.noRegularFile()
	case d.cleanlyClosed() && !d.has(damagedName):
		return nil, nil
	}
	f, err := pagefile.Open(d.file())
	switch {
	case (isEmpty(err) || errors.Is(err, pagefile.ErrForeign)) && d.wasUsed():
		return fmt.Errorf("%w, and events were accepted in it", err), nil
	case isEmpty(err):
		return nil, fmt.Errorf("%w, and %w: the next start makes a spool of it", err, errNeverUsed)
	case errors.Is(err, pagefile.ErrForeign):
		return nil, d.foreign()
	case errors.Is(err, pagefile.ErrVersion):
		return nil, fmt.Errorf("%s: %w: %w", d.file(), ErrNewerFormat, err)
	case errors.Is(err, pagefile.ErrTruncated):
		return err, nil
	case err != nil:
		return nil, fmt.Errorf("the spool cannot be opened: %w", err)
	}
	defer f.Close()
	if d.has(damagedName) {
		return errors.New("a fault was met while Postern ran"), nil
	}
	if err := f.Verify(ctx); err != nil {
		return err, nil
	}
	if torn := f.MetaDamage(); torn != nil {
		// bbolt would go on with the other one, and the last commit, which was acknowledged, would be missing.
		return torn, nil
	}
	return nil, nil
}

// errNeverUsed means a file that was made and never written, by a start that was cut short before anything was accepted.
var errNeverUsed = errors.New("nothing was ever accepted in it")

func (d *directory) foreign() error {
	return fmt.Errorf("%s: %w: move it away or choose another spool.dir", d.file(), ErrNotSpool)
}

func (d *directory) noRegularFile() error {
	return fmt.Errorf("%s: %w: it is no regular file: move it away or choose another spool.dir", d.file(), ErrNotSpool)
}

func isEmpty(err error) bool {
	return errors.Is(err, pagefile.ErrEmpty) || errors.Is(err, pagefile.ErrBlank)
}

// wasUsed tells whether a commit was ever begun here: the marks come before the first one, and after the file was written
// and synced for the first time; what a salvage kept comes of a spool, too. The lock says nothing: who is refused because
// of somebody else's file leaves one behind, and the next start must refuse that file again.
func (d *directory) wasUsed() bool {
	kept, _ := filepath.Glob(d.file() + keptSuffix + "*")
	return len(kept) > 0 || d.has(cleanName) || d.has(damagedName)
}

func (d *directory) has(name string) bool {
	_, err := os.Lstat(d.join(name))
	return err == nil
}
