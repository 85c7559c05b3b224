package configs

import (
	"os"
	"path/filepath"
	"regexp"
	"slices"
)

// IngestListener finds out where the Postern of a configuration takes requests, and AdminListener where its admin API is,
// each with its token file. They look at nothing else: who asks a running Postern must not be kept from it by a mistake
// that the next start would meet, or by a secret that only Postern may read. Token files are named and not read.
//
// err means that the address cannot be told: the file cannot be read, or is wrong where the address stands or may be
// meant to stand, or has no key at all, as one that was cut off. Another Postern may be at the default address then. A file
// that says nothing of an address, such as {}, means the default. aside is what is wrong beside an address that is known, such as one that o gives.
func IngestListener(o Options) (l Listener, aside, err error) {
	return o.find(ingestFace)
}

// AdminListener is described at IngestListener.
func AdminListener(o Options) (l Listener, aside, err error) {
	return o.find(adminFace)
}

// face is one of the two listeners that commands ask: its keys, and the lines that begin its blocks.
type face struct {
	section, listen, token string
	lines                  *regexp.Regexp
}

var (
	ingestFace = face{"", "listen", "token_file", regexp.MustCompile(`^(listen|token_file)\s*:`)}
	adminFace  = face{"admin", "admin.listen", "admin.token_file", regexp.MustCompile(`^admin\s*:`)}
)

// of is the face's listener, and what a flag or a variable says about its address.
func (f face) of(c *Config, o Options) (l *Listener, flag string) {
	if f.section == "" {
		return &c.Listen, o.Listen
	}
	return &c.Admin, o.AdminListen
}

func (o Options) find(f face) (l Listener, aside, err error) {
	if o.Getenv == nil {
		o.Getenv = os.LookupEnv
	}
	c := Defaults()
	path, data, err := o.readFile()
	r := newReader(path, filepath.Dir(inDir(o.Dir, path)), o.Getenv)
	known := false
	if err == nil {
		known = c.glance(r, data, f)
		err = join(r.problems)
	}
	r.problems = nil
	Options{Listen: o.Listen, AdminListen: o.AdminListen, Getenv: o.Getenv}.apply(c, r)
	listener, flag := f.of(c, o)
	if listener.TokenFile != "" {
		listener.TokenFile = inDir(r.base, listener.TokenFile)
	}
	r.keep(f.listen)
	switch {
	case len(r.problems) > 0:
		return *listener, err, join(r.problems)
	case known || flag != "":
		return *listener, err, nil
	}
	return *listener, nil, err
}

// keep drops the problems of all other keys.
func (r *reader) keep(keys ...string) {
	r.problems = slices.DeleteFunc(r.problems, func(p *Problem) bool { return !slices.Contains(keys, p.Key) })
}
