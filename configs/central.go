package configs

import (
	"os"
	"path/filepath"
	"regexp"
	"strings"
)

// Central reads what the commands about the fleet need, and judges the section sync alone: who asks the central Postgres
// must not be kept from it by a mistake that only the next start of a Postern would meet, or by a secret that only that
// Postern may read.
//
// c has what could be read of everything else, such as the policies of endpoints, unchecked; other tells what could not,
// nil where that is nothing. err is about the file as a whole and the section sync, flags and environment included.
func Central(o Options) (c *Config, other, err error) {
	if o.Getenv == nil {
		o.Getenv = os.LookupEnv
	}
	path, data, err := o.readFile()
	if err != nil {
		return nil, nil, err
	}
	c = Defaults()
	c.File = path
	r := newReader(path, filepath.Dir(inDir(o.Dir, path)), o.Getenv)
	root := r.parseDocument(data)
	if text := blocks(string(data), syncKey); len(r.problems) > 0 && text != "" {
		root = r.parseDocument([]byte(text))
	}
	if r.resolve(root) != nil {
		c.fields().read(r, root, "")
	}
	o.apply(c, r)
	o.checkDSN(c, r)
	var ours, others []*Problem
	for _, p := range r.problems {
		if p.Key == "sync" || strings.HasPrefix(p.Key, "sync.") || p.Key == "" && c.Sync.DSN == "" {
			ours = append(ours, p)
		} else {
			others = append(others, p)
		}
	}
	return c, join(others), join(ours)
}

var syncKey = regexp.MustCompile(`^sync\s*:`)

// blocks cuts the top-level entries whose first line matches out of a file in block style, for one that is no YAML as a
// whole. Other lines are left empty, so that numbers of lines stay what they are; without such an entry there is no text.
func blocks(text string, key *regexp.Regexp) string {
	var found strings.Builder
	inside, some := false, false
	for line := range strings.Lines(text) {
		if first := line[0]; first != ' ' && first != '\t' && first != '#' && first != '\n' && first != '\r' {
			inside = key.MatchString(line)
			some = some || inside
		}
		if inside {
			found.WriteString(line)
		} else {
			found.WriteByte('\n')
		}
	}
	if !some {
		return ""
	}
	return found.String()
}
