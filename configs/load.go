package configs

import (
	"errors"
	"fmt"
	"io/fs"
	"os"
	"path/filepath"
	"strings"
)

// Options are what the command line says. Empty fields leave the decision to the file and the defaults.
type Options struct {
	Path        string // --config
	Data        string // --data: spool.dir
	Listen      string // --listen
	AdminListen string // --admin-listen: admin.listen
	SyncDSN     string // --sync-dsn: sync.dsn, a secret
	Dev         bool   // --dev: private targets allowed, delays shortened, text logs
	Pprof       bool   // --pprof: admin.pprof
	// CheckDSN tells what is wrong with the syntax of sync.dsn, without repeating it; nil leaves it unchecked. The one
	// who knows Postgres gives it.
	CheckDSN func(string) error
	// Getenv is os.LookupEnv where it is nil.
	Getenv func(string) (string, bool)
	// Dir is what relative paths of flags and ./postern.yaml are relative to; empty means the working directory.
	Dir string
}

const (
	defaultFile = "postern.yaml"
	pathEnv     = "POSTERN_CONFIG"
	dsnEnv      = "POSTERN_SYNC_DSN"
)

// Load reads the configuration and checks it. Its error joins all the *Problem that were found.
func Load(o Options) (*Config, error) {
	if o.Getenv == nil {
		o.Getenv = os.LookupEnv
	}
	path, data, err := o.readFile()
	if err != nil {
		return nil, err
	}
	return o.load(path, data)
}

func (o Options) load(path string, data []byte) (*Config, error) {
	c := Defaults()
	c.File = path
	r := newReader(path, filepath.Dir(inDir(o.Dir, path)), o.Getenv)
	root := r.parseDocument(data)
	if c.Blank = r.resolve(root) == nil; !c.Blank {
		c.fields().read(r, root, "")
	}
	o.apply(c, r)
	c.shrink(r)
	c.check(r)
	o.checkDSN(c, r)
	if err := join(r.problems); err != nil {
		return nil, err
	}
	if o.Dev {
		c.applyDev()
	}
	c.buildLookup()
	return c, nil
}

// readFile finds and reads the configuration file; path is empty where there is none.
func (o Options) readFile() (path string, data []byte, err error) {
	path, advice := o.Path, "give another file with --config"
	if path == "" {
		path, _ = o.Getenv(pathEnv)
		advice = "correct or unset " + pathEnv
	}
	optional := path == ""
	if optional {
		path = defaultFile
	}
	data, err = readLimited(inDir(o.Dir, path), maxFileBytes)
	if optional && errors.Is(err, fs.ErrNotExist) {
		return "", nil, nil
	}
	if err != nil {
		return "", nil, &Problem{File: path, Text: fmt.Sprintf("the configuration file %v; %s", err, advice)}
	}
	return path, data, nil
}

// apply lets the flags replace what the file says.
func (o Options) apply(c *Config, r *reader) {
	if c.Sync.DSN == "" && !r.has("sync.dsn") {
		dsn, _ := o.Getenv(dsnEnv)
		o.override(r, dsnEnv, "sync.dsn", dsn, func(text string) (err error) {
			c.Sync.DSN = strings.TrimRight(text, "\r\n")
			return noControl(c.Sync.DSN)
		})
	}
	o.override(r, o.source("--data", "POSTERN_DATA", o.Data), "spool.dir", o.Data, func(text string) (err error) {
		c.Spool.Dir, err = filePath(text)
		return err
	})
	o.override(r, o.source("--listen", "POSTERN_LISTEN", o.Listen), "listen", o.Listen, func(text string) (err error) {
		c.Listen.Address, err = parseListen(text)
		return err
	})
	o.override(r, o.source("--admin-listen", "POSTERN_ADMIN_LISTEN", o.AdminListen), "admin.listen", o.AdminListen, func(text string) (err error) {
		c.Admin.Address, err = parseListen(text)
		return err
	})
	o.override(r, "--sync-dsn", "sync.dsn", o.SyncDSN, func(text string) error {
		c.Sync.DSN = text
		return noControl(text)
	})
	c.Pprof = c.Pprof || o.Pprof
	c.Spool.Dir = inDir(o.Dir, c.Spool.Dir)
}

// checkDSN holds sync.dsn against the syntax of connection strings.
func (o Options) checkDSN(c *Config, r *reader) {
	if o.CheckDSN == nil || c.Sync.DSN == "" {
		return
	}
	err := o.CheckDSN(c.Sync.DSN)
	if strings.TrimSpace(c.Sync.DSN) == "" {
		err = errors.New("the value is nothing but blanks; write a connection string, or remove the key for no sync")
	}
	r.require(err == nil, []string{"sync.dsn"}, "%v", err)
}

// source says where a value was given: the command line takes some of its flags from the environment.
func (o Options) source(flag, variable, text string) string {
	if value, ok := o.Getenv(variable); ok && value == text {
		return variable
	}
	return flag
}

func (o Options) override(r *reader, source, key, text string, set func(string) error) {
	if text == "" {
		return
	}
	at := place{source: source}
	r.where[key], r.failed[key] = at, false
	if err := set(text); err != nil {
		r.failed[key] = true
		r.addAt(at, key, "%v", err)
	}
}

// shrink fits the bounds that nobody set into a smaller spool that somebody did set.
func (c *Config) shrink(r *reader) {
	s := &c.Spool
	if !r.has("spool.max_event_bytes") {
		s.MaxEventBytes = min(s.MaxEventBytes, s.largestEvent())
	}
	if !r.has("spool.history_max_bytes") {
		s.HistoryMaxBytes = min(s.HistoryMaxBytes, s.largestHistory())
	}
	if !r.has("sync.max_backlog_bytes") {
		c.Sync.MaxBacklogBytes = min(c.Sync.MaxBacklogBytes, s.HistoryMaxBytes/4*3)
	}
}

// largestEvent is the bound of max_event_bytes: two such events fit into an endpoint's share of the spool, so that one
// which waits cannot keep the next one out for ever; a quarter of the spool, since a commit copies what it touches; and
// what one transaction may hold in memory.
func (s *Spool) largestEvent() int64 {
	return min(int64(float64(s.MaxBytes)*s.MaxEndpointShare/2), s.MaxBytes/4, 256*mib)
}

// largestHistory is the bound of history_max_bytes: history must leave the spool to the events.
func (s *Spool) largestHistory() int64 { return s.MaxBytes / 8 }

// noControl refuses a secret that was pasted with something invisible in it.
func noControl(text string) error {
	if strings.ContainsAny(text, "\r\n") {
		return errors.New("the value has a line break (a control character) in it; write one value, on one line")
	}
	for i := range len(text) {
		if text[i] < ' ' || text[i] == 0x7f {
			return errors.New("the value has a control character in it; remove it")
		}
	}
	return nil
}
