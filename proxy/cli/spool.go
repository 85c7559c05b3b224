package cli

import (
	"cmp"
	"errors"
	"fmt"
	"strings"

	"postern/proxy/cli/term"
	"postern/spool"
)

type spoolCmd struct {
	Check   spoolCheckCmd   `cmd:"" help:"Look through a spool without changing it."`
	Compact spoolCompactCmd `cmd:"" help:"Give the free space in a spool back to the disk."`
	Salvage spoolSalvageCmd `cmd:"" help:"Make a new spool of what can be read of a damaged one."`
	Rekey   spoolRekeyCmd   `cmd:"" help:"Have every record under the newest encryption key."`
}

// Help is shown under the command's usage.
func (spoolCmd) Help() string {
	return "Stop Postern first; rekey alone also works on a running one, by waiting for it.\n\nExample:\n\n    postern spool check --data ./postern-data"
}

// spoolFlags name the spool. All three commands need it to themselves.
type spoolFlags struct {
	Config string `short:"c" placeholder:"FILE" fromenv:"POSTERN_CONFIG" group:"config" help:"Configuration file that says where the spool is (spool.dir)."`
	Data   string `placeholder:"DIR" fromenv:"POSTERN_DATA" group:"config" help:"Directory of the spool; then no configuration is read."`
	JSON   bool   `name:"json" help:"Print a report as JSON."`
}

// dir does without the configuration where it can: a spool must be helped while the file or a secret is missing.
func (f spoolFlags) dir(s *session) (string, error) {
	if f.Data != "" {
		return f.Data, nil
	}
	cfg, err := s.loadConfig(configFlags{Config: f.Config}.options(s))
	if err != nil {
		return "", err
	}
	return cfg.Spool.Dir, nil
}

// dirAndKeys is dir with the keys of an encrypted spool, where a configuration is read.
func (f spoolFlags) dirAndKeys(s *session) (string, [][]byte, error) {
	if f.Data != "" {
		return f.Data, nil, nil
	}
	cfg, err := s.loadConfig(configFlags{Config: f.Config}.options(s))
	if err != nil {
		return "", nil, err
	}
	return cfg.Spool.Dir, cfg.Spool.EncryptionKeys, nil
}

// spoolError says what to do about the two errors that have an answer.
func spoolError(dir string, err error) error {
	switch {
	case errors.Is(err, spool.ErrInUse):
		return fmt.Errorf("the spool in %s is in use by a running Postern; stop it first, or ask it with `postern status`", dir)
	case errors.Is(err, spool.ErrNewerFormat):
		return fmt.Errorf("%w; use that version or a newer one", err)
	}
	return err
}

type spoolCheckCmd struct{ spoolFlags }

// Help is shown under the command's usage.
func (spoolCheckCmd) Help() string {
	return "It reads every page and every record, and compares indexes and counts with them. What is encrypted is opened where a configuration names the keys. Exit code 0: the spool is whole. Exit code 1: it is not, or cannot be looked at.\n\nExample:\n\n    postern spool check --data ./postern-data"
}

// checkReport is the JSON of a check.
type checkReport struct {
	Dir        string   `json:"dir"`
	Whole      bool     `json:"whole"`
	Pending    int64    `json:"pending"`
	Failed     int64    `json:"awaiting_retry"`
	DeadLetter int64    `json:"dead_letter"`
	Delivered  int64    `json:"delivered"`
	OutboxRows int64    `json:"outbox_rows"`
	SetAside   int64    `json:"set_aside"`
	Keys       []string `json:"encryption_keys"` // names; "none" where records are not encrypted
	Problems   []string `json:"problems"`
}

// Run looks through the spool.
func (c *spoolCheckCmd) Run(s *session) error {
	dir, keys, err := c.dirAndKeys(s)
	if err != nil {
		return err
	}
	found, err := spool.Check(dir, keys...)
	if err != nil {
		return spoolError(dir, err)
	}
	report := checkReport{
		Dir: dir, Whole: len(found.Problems) == 0, Pending: found.Pending, Failed: found.Failed, DeadLetter: found.DeadLetter,
		Delivered: found.Delivered, OutboxRows: found.OutboxRows, SetAside: found.SetAside, Keys: append([]string{}, found.Keys...), Problems: append([]string{}, found.Problems...),
	}
	if c.JSON {
		err = s.encode(report)
	} else {
		err = s.facts(report.facts())
	}
	if err == nil && !report.Whole {
		return fmt.Errorf("the spool in %s is not whole; `postern spool salvage` makes a new one of what can be read, and so does the next start if it has to", dir)
	}
	return err
}

func (r checkReport) facts() []fact {
	facts := []fact{
		{name: "spool", value: r.Dir},
		{name: "pending", value: fmt.Sprint(r.Pending)},
		{name: "awaiting retry", value: fmt.Sprint(r.Failed)},
		{name: "dead letters", value: fmt.Sprint(r.DeadLetter)},
		{name: "delivered, kept", value: fmt.Sprint(r.Delivered)},
		{name: "rows for Postgres", value: fmt.Sprint(r.OutboxRows)},
		{name: "set aside", value: fmt.Sprint(r.SetAside), color: some(r.SetAside, term.Warn)},
		{name: "encrypted with", value: cmp.Or(strings.Join(r.Keys, ", "), "-")},
	}
	for _, problem := range r.Problems {
		facts = append(facts, fact{name: "problem", value: problem, color: term.Bad})
	}
	if r.Whole {
		facts = append(facts, fact{name: "result", value: "whole", color: term.Good})
	}
	return facts
}

type spoolCompactCmd struct{ spoolFlags }

// Help is shown under the command's usage.
func (spoolCompactCmd) Help() string {
	return "A running Postern does this by itself; here it is done at once. The disk needs room for the copy.\n\nExample:\n\n    postern spool compact --data ./postern-data"
}

// Run copies the spool into a smaller file.
func (c *spoolCompactCmd) Run(s *session) error {
	dir, err := c.dir(s)
	if err != nil {
		return err
	}
	bar := term.NewProgress(s.err, "compacted")
	bar.Format = term.Bytes
	var whole int64
	before, after, err := spool.Compact(dir, func(done, total int64) {
		whole = total
		bar.Set(done, total)
	})
	if err == nil {
		bar.Set(whole, whole) // what is free is not copied: the last step that was told may be far from the end
	}
	bar.Close()
	if err != nil {
		return spoolError(dir, err)
	}
	if c.JSON {
		return s.encode(map[string]any{"dir": dir, "before_bytes": before, "after_bytes": after})
	}
	_, err = fmt.Fprintf(s.out, "%s: %s before, %s now.\n", dir, term.Bytes(before), term.Bytes(after))
	return err
}

type spoolSalvageCmd struct{ spoolFlags }

// Help is shown under the command's usage.
func (spoolSalvageCmd) Help() string {
	return "The damaged file is kept beside the new one as spool.db.corrupt-TIME. An event that was delivered may be sent again, since its record of delivery may be what was lost.\n\nExample:\n\n    postern spool salvage --data ./postern-data"
}

// Run salvages what can be read.
func (c *spoolSalvageCmd) Run(s *session) error {
	dir, err := c.dir(s)
	if err != nil {
		return err
	}
	report, err := spool.Salvage(dir)
	if err != nil {
		return spoolError(dir, err)
	}
	if c.JSON {
		return s.encode(map[string]any{
			"dir": dir, "recovered": report.Recovered, "doubtful": report.Doubtful, "lost": report.Lost, "lost_unit": cmp.Or(report.Unit, spool.UnitEvents),
			"estimate": report.Estimate, "set_aside": report.SetAside, "damage": report.Damage, "damaged_pages": report.Pages, "kept": report.Kept,
		})
	}
	_, err = fmt.Fprintf(s.out, "%s: %s recovered, %s; the old file is kept as %s.\n%s", dir, term.Count(report.Recovered, "event"), lostText(&report), report.Kept, doubtText(&report))
	return err
}

func lostText(r *spool.SalvageReport) string {
	switch {
	case r.Unit == spool.UnitPages:
		return fmt.Sprintf("%s lost, and nothing tells how many events were on them", term.Count(r.Lost, "page"))
	case r.Unit == spool.UnitFile:
		return "and the whole content of the file lost"
	case r.Estimate && r.Lost > 0:
		return fmt.Sprintf("%s lost by the numbers that are missing, where events that were finished leave gaps too", term.Count(r.Lost, "event"))
	}
	return term.Count(r.Lost, "event") + " lost"
}

// doubtText says what the events are of which nothing tells whether they were delivered.
func doubtText(r *spool.SalvageReport) string {
	switch {
	case r.Doubtful == 0:
		return ""
	case r.Estimate || r.Unit != spool.UnitEvents:
		return fmt.Sprintf("Of those recovered %d may have been delivered before: nothing is left that tells. They are sent again, with the same IDs.\n", r.Doubtful)
	}
	return fmt.Sprintf("Of those recovered %d may have been delivered before: they are sent again, with the same IDs. For each that was, another event is lost.\n", r.Doubtful)
}
