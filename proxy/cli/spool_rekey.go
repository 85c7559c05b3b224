package cli

import (
	"context"
	"errors"
	"fmt"
	"time"

	"postern/configs"
	"postern/proxy/app"
	"postern/proxy/cli/term"
	"postern/proxy/client"
	"postern/spool"
)

type spoolRekeyCmd struct {
	Config string `short:"c" placeholder:"FILE" fromenv:"POSTERN_CONFIG" group:"config" help:"Configuration file with spool.encryption_key_files, the newest first."`
	Data   string `placeholder:"DIR" fromenv:"POSTERN_DATA" group:"config" help:"Directory of the spool; replaces spool.dir."`
	Plain  bool   `help:"Decrypt instead: leave every record readable. Postern must be stopped."`
	JSON   bool   `name:"json" help:"Print a report as JSON."`
}

// Help is shown under the command's usage.
func (spoolRekeyCmd) Help() string {
	return "To change a key, put the file of the new one first in spool.encryption_key_files and leave the old one behind it. A running Postern takes that at a SIGHUP and rewrites its records by itself; this command waits until it has, and has copied its file, so that nothing is left of what was there before. The spool of a stopped one is rewritten here. Afterwards the old file can be removed from the list.\n\nExample:\n\n    postern spool rekey --config postern.yaml"
}

// rekeyReport is the JSON of a rekey.
type rekeyReport struct {
	Dir       string `json:"dir"`
	Key       string `json:"key"`               // the name of the key that everything is under; "none" after --plain
	Running   bool   `json:"running"`           // a running Postern did it
	Rewritten *int   `json:"records_rewritten"` // null where a running one did it
	CopyOwed  bool   `json:"copy_owed"`         // free pages of the file may still hold what was there before
}

// Run rewrites, or waits for the running Postern that does.
func (c *spoolRekeyCmd) Run(s *session) error {
	o := configFlags{Config: c.Config}.options(s)
	o.Data = c.Data
	cfg, err := s.loadConfig(o)
	if err != nil {
		return err
	}
	if len(cfg.Spool.EncryptionKeys) == 0 {
		return usage("spool.encryption_key_files names no key; write the file of a key into the configuration: `openssl rand -base64 32 > spool.key` makes one")
	}
	report := rekeyReport{Dir: cfg.Spool.Dir}
	done, err := spool.Rekey(app.SpoolConfig(cfg), c.Plain)
	switch {
	case errors.Is(err, spool.ErrInUse) && c.Plain:
		return fmt.Errorf("the spool in %s is in use by a running Postern; stop it first: as long as it runs it encrypts", cfg.Spool.Dir)
	case errors.Is(err, spool.ErrInUse):
		report.Running = true
		report.Key = spool.KeyName(cfg.Spool.EncryptionKeys[0])
		report.CopyOwed, err = c.await(s, cfg, report.Key)
	case err == nil:
		report.Key, report.Rewritten = done.Key, &done.Rewritten
	}
	if err != nil {
		return spoolError(cfg.Spool.Dir, err)
	}
	if c.JSON {
		return s.encode(report)
	}
	return c.tell(s, report)
}

func (c *spoolRekeyCmd) tell(s *session, r rekeyReport) (err error) {
	switch {
	case c.Plain:
		_, err = fmt.Fprintf(s.out, "%s: %s decrypted. Nothing is encrypted any more; take the keys out of spool.encryption_key_files.\n", r.Dir, term.Count(int64(*r.Rewritten), "record"))
	case r.CopyOwed:
		_, err = fmt.Fprintf(s.out, copyOwed, r.Dir, r.Key)
	case r.Running:
		_, err = fmt.Fprintf(s.out, "%s: the running Postern has every record under the key %s. Older keys are not needed any more.\n", r.Dir, r.Key)
	default:
		_, err = fmt.Fprintf(s.out, "%s: %s rewritten; every record is under the key %s. Older keys are not needed any more.\n", r.Dir, term.Count(int64(*r.Rewritten), "record"), r.Key)
	}
	return err
}

const (
	// rekeyEvery is how often a running Postern is asked, rekeyLimit how long it may take: a spool of many gigabytes that is
	// full takes its time.
	rekeyEvery = 200 * time.Millisecond
	rekeyLimit = time.Hour
	// rekeyCopy is how long the copy is waited for that follows: where there is room it is made within seconds.
	rekeyCopy = 10 * time.Second
)

const copyOwed = `%s: the running Postern has every record under the key %s. Older keys are not needed any more.
The spool's file is not copied yet: its free pages may still hold what was there before.
Postern copies it as soon as there is room, when enough was delivered; "copy_owed" of
GET /api/v1/spool/keys tells. To have it now, stop Postern and run this command again.
`

// await asks the running Postern until it has rewritten everything with the key and, for a while, until the file is copied.
func (c *spoolRekeyCmd) await(s *session, cfg *configs.Config, want string) (copyOwed bool, err error) {
	place := whereabouts{config: cfg.File}
	admin, err := connect(s, place, adminFace, client.NewAdmin)
	if err != nil {
		return false, err
	}
	defer admin.Close()
	ctx, cancel := context.WithTimeout(context.Background(), rekeyLimit)
	defer cancel()
	var patience <-chan time.Time // runs from the end of the rewriting
	for {
		reply, err := admin.SpoolKeys(ctx)
		keys := reply.Value
		switch {
		case err != nil:
			return false, err
		case keys.Newest != want:
			return false, fmt.Errorf("the running Postern does not use the key %s, the first of spool.encryption_key_files, yet (it uses: %s); send it a SIGHUP, look at its log, and try again", want, keys.Newest)
		case !keys.Rewriting && !keys.CopyOwed:
			return false, nil
		case !keys.Rewriting && patience == nil:
			patience = time.After(rekeyCopy)
		}
		select {
		case <-ctx.Done():
			return false, errors.New("the running Postern has not rewritten its records within an hour; it goes on: its log says when it has, and what keeps it")
		case <-patience:
			return true, nil
		case <-time.After(rekeyEvery):
		}
	}
}
