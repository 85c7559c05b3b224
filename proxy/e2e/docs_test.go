package e2e

import (
	"encoding/json"
	"os"
	"os/exec"
	"path/filepath"
	"regexp"
	"slices"
	"strings"
	"testing"

	"github.com/goccy/go-yaml"

	"postern/sync/pgtest"
)

// block is a fenced block of a document.
type block struct {
	file, language, text string
	line                 int
	// mark is what a comment right above it says, such as "not run: why" or "yaml: prometheus".
	mark string
}

var markComment = regexp.MustCompile(`^<!-- (.*) -->$`)

// documents are what people read: the README, everything in docs/, and the README of the examples.
func documents(t *testing.T) []string {
	t.Helper()
	files, err := filepath.Glob("../../docs/*.md")
	if err != nil || len(files) < 10 {
		t.Fatalf("%v, %v", files, err)
	}
	return append(files, "../../README.md", "../../CHANGELOG.md", "../../SECURITY.md", "../../examples/README.md", "../../spool/DESIGN.md")
}

func blocksOf(t *testing.T, file string) (blocks []block) {
	t.Helper()
	text, err := os.ReadFile(file)
	if err != nil {
		t.Fatal(err)
	}
	var open *block
	mark := ""
	for i, line := range strings.Split(string(text), "\n") {
		language, fence := strings.CutPrefix(line, "```")
		switch {
		case fence && open == nil:
			open = &block{file: filepath.Base(file), language: language, line: i + 1, mark: mark}
		case fence:
			blocks = append(blocks, *open)
			open, mark = nil, ""
		case open != nil:
			open.text += line + "\n"
		case line != "":
			mark = ""
			if m := markComment.FindStringSubmatch(line); m != nil {
				mark = m[1]
			}
		}
	}
	if open != nil {
		t.Fatalf("%s:%d: a block has no end", file, open.line)
	}
	return blocks
}

// TestDocumentBlocks runs, loads or finds the source of every fenced block. One that cannot be run says why, in a comment
// above it: <!-- not run: why -->.
func TestDocumentBlocks(t *testing.T) {
	t.Parallel()
	tested := map[string]int{}
	d := newDesk(t)
	for _, file := range documents(t) {
		for _, b := range blocksOf(t, file) {
			tested[b.language]++
			switch b.language {
			case "sh":
				if b.file != "getting-started.md" { // TestGettingStarted runs those, with the receiver that they speak of
					d.shell(b)
				}
			case "yaml":
				d.yaml(b)
			case "json":
				if !json.Valid([]byte(b.text)) {
					t.Errorf("%s:%d: not JSON", b.file, b.line)
				}
			case "sql":
				if !slices.Contains([]string{"sql-cookbook.md", "sync.md"}, b.file) {
					t.Errorf("%s:%d: tests of sync/pgstore run the SQL of docs/sql-cookbook.md and docs/sync.md alone: add it there", b.file, b.line)
				}
			case "python", "go", "js", "php", "ruby", "java":
				fromExample(t, b)
			case "text":
				plain(t, b)
			default:
				t.Errorf("%s:%d: nothing tests blocks of the language %q", b.file, b.line, b.language)
			}
		}
	}
	if out, err := d.command("postern events show evt_waits").CombinedOutput(); err == nil {
		t.Errorf("the runbook's way to drop what waits left it: %s", out)
	}
	for language, least := range map[string]int{"sh": 10, "yaml": 8, "sql": 10, "python": 2} {
		if tested[language] < least {
			t.Errorf("only %d blocks of %s", tested[language], language)
		}
	}
}

// desk is where a reader sits: a shell with a running Postern, a partner and a central Postgres.
type desk struct {
	t     *testing.T
	p     *postern
	dir   string
	words *strings.Replacer // what stands for what in the documents
}

func newDesk(t *testing.T) *desk {
	t.Helper()
	partner := newReceiver(t, nil)
	refusing := newReceiver(t, script(status(401)))
	p := newPostern(t, "")
	d := &desk{t: t, p: p, dir: t.TempDir()}
	dsn := pgtest.Start(t).DSN() // documents speak of the schema postern, which on a shared server may be somebody's
	p.configure(calm + "endpoints:\n  - { name: partner-a, url: \"" + partner.url("/postback") + "\", match: [\"" + partner.url("/") + "\"] }\n" +
		"  - { name: refusing, url: \"" + refusing.url("/") + "\" }\nsync: { dsn: \"" + dsn + "\", interval: 100ms }\n")
	p.options = []string{"--pprof"}
	p.start()
	p.waitState(p.accept("POST", "/to/partner-a", "{}"), "delivered", patience)
	d.words = strings.NewReplacer(
		"http://localhost:8089", p.ingest, "http://127.0.0.1:8089", p.ingest, "http://localhost:8090", p.admin, "http://127.0.0.1:8090", p.admin,
		"http://127.0.0.1:39793", strings.TrimSuffix(partner.url(""), "/"), // of --hello
		"https://partner.example", strings.TrimSuffix(partner.url(""), "/"), "postgres://postern@db.example/postern", dsn)
	d.tools()
	// There is a dead letter to look at.
	p.waitState(p.accept("POST", "/to/refusing", "{}"), "dead_letter", patience)
	// There is an event that waits, to be dropped.
	if out, err := d.command("postern send --to partner-a --delay 1h --event-id evt_waits").CombinedOutput(); err != nil {
		t.Fatalf("%v: %s", err, out)
	}
	d.eventually("the fleet to know partner-a", `postern fleet percentiles --endpoint partner-a --dsn '`+dsn+`'`)
	return d
}

// tools are the files and programs that documents speak of.
func (d *desk) tools() {
	d.t.Helper()
	d.program()
	for name, text := range map[string]string{
		".bin/page-somebody": "#!/bin/sh\n",
		"secret":             whsec([]byte("a secret")),
		"order.json":         `{"order":1}`,
	} {
		if err := os.WriteFile(filepath.Join(d.dir, name), []byte(text), 0o700); err != nil {
			d.t.Fatal(err)
		}
	}
	d.captured()
}

// program puts postern where a shell finds it.
func (d *desk) program() {
	d.t.Helper()
	bin := filepath.Join(d.dir, ".bin")
	must(d.t, os.Mkdir(bin, 0o700))
	must(d.t, os.Symlink(binary, filepath.Join(bin, "postern")))
}

// captured is a request as a receiver got it, for postern verify.
func (d *desk) captured() {
	d.t.Helper()
	recv := newReceiver(d.t, nil)
	p := newPostern(d.t, calm+"endpoints:\n  - { name: s, url: \""+recv.url("/hook")+"\", sign: { scheme: standard, secrets: [\"file:key\"] } }\n")
	p.secretFile("key", whsec([]byte("a secret")))
	p.start()
	p.accept("POST", "/to/s", "body")
	q := recv.wait(1, patience)[0]
	if err := os.WriteFile(filepath.Join(d.dir, "request.http"), append(append(q.Raw, "\r\n\r\n"...), q.Body...), 0o600); err != nil {
		d.t.Fatal(err)
	}
	p.stop(patience)
}

func (d *desk) command(text string) *exec.Cmd {
	repository, err := filepath.Abs("../..")
	must(d.t, err)
	cmd := exec.CommandContext(d.t.Context(), "bash", "-euo", "pipefail", "-c", text)
	cmd.Dir = d.dir
	cmd.Env = append(os.Environ(), "REPOSITORY="+repository, "PPROF_TMPDIR="+d.dir, "POSTERN_ADMIN="+d.p.admin, "POSTERN_INGEST="+d.p.ingest, "PATH="+filepath.Join(d.dir, ".bin")+":"+os.Getenv("PATH"))
	return cmd
}

func (d *desk) eventually(what, text string) {
	d.t.Helper()
	d.p.eventually(patience, what, func() bool { return d.command(text).Run() == nil })
}

// shell runs a block as a person would, and expects that all of it succeeds.
func (d *desk) shell(b block) {
	d.t.Helper()
	if why, not := strings.CutPrefix(b.mark, "not run: "); not {
		if len(why) < 10 {
			d.t.Errorf("%s:%d: does not say why it is not run", b.file, b.line)
		}
		return
	}
	text := d.words.Replace(b.text)
	if way, marked := strings.CutPrefix(b.mark, "sh: "); marked {
		other, known := otherwise[way]
		if !known {
			d.t.Errorf("%s:%d: no way to run a block is called %q", b.file, b.line, way)
			return
		}
		text = other.Replace(text)
	}
	if out, err := d.command(text).CombinedOutput(); err != nil {
		d.t.Errorf("%s:%d: %v\n%s\n%s", b.file, b.line, err, text, out)
	}
}

// otherwise are ways to run a block for a shorter time, or for its form alone: <!-- sh: WAY -->. The arguments of the
// benchmark are tried by a test of its own.
var otherwise = map[string]*strings.Replacer{
	"dry": strings.NewReplacer("make ", "make -n -C \"$REPOSITORY\" "),
	"profiles": strings.NewReplacer("go tool pprof ", "go tool pprof -top ", "seconds=10", "seconds=1", "seconds=2", "seconds=1",
		"go tool trace trace.out", "go tool trace -pprof=sched trace.out >sched.out"),
}

// plain is a block that nobody types: <!-- text: what it is -->. A list of folders names what is there.
func plain(t *testing.T, b block) {
	t.Helper()
	what, marked := strings.CutPrefix(b.mark, "text: ")
	if !marked {
		t.Errorf("%s:%d: a comment above it must say what this text is, or its language be given", b.file, b.line)
	}
	if what != "folders" {
		return
	}
	above, found := "", 0
	for line := range strings.Lines(b.text) {
		names := regexp.MustCompile(`^ *((?:[\w/.]+(?:/|\.go) +)+)`).FindStringSubmatch(line)
		if names == nil {
			continue
		}
		if !strings.HasPrefix(line, " ") {
			above = ""
		}
		for _, name := range strings.Fields(names[1]) {
			found++
			if _, err := os.Stat(filepath.Join("../..", above, name)); err != nil {
				t.Errorf("%s:%d: %v", b.file, b.line, err)
			}
		}
		if above == "" {
			above = strings.Fields(names[1])[0]
		}
	}
	if found < 40 {
		t.Errorf("%s:%d: only %d folders were found", b.file, b.line, found)
	}
}

// Names of files that configurations in documents speak of, and what replaces them.
var (
	secretsInYAML = regexp.MustCompile(`"file:[^"]*"`)
	tlsInYAML     = regexp.MustCompile(`(?m)^(\s+)(ca_file|cert_file|key_file): .*$`)
	keysInYAML    = regexp.MustCompile(`(encryption_key_files: )\[[^\]]*\]`)
)

// yaml loads a block as a configuration, unless its mark says that it is another program's. A piece of an endpoint is
// put into one.
func (d *desk) yaml(b block) {
	d.t.Helper()
	var any any
	text := b.text
	if strings.HasPrefix(text, " ") {
		text = "endpoints:\n  - name: a\n    url: https://partner.example/\n" + text
	}
	if err := yaml.Unmarshal([]byte(text), &any); err != nil {
		d.t.Errorf("%s:%d: %v", b.file, b.line, err)
		return
	}
	if strings.HasPrefix(b.mark, "yaml: ") {
		return
	}
	key := filepath.Join(d.dir, "key")
	if err := os.WriteFile(key, []byte("0123456789abcdefghijklmnopqrstuv"), 0o600); err != nil {
		d.t.Fatal(err)
	}
	text = secretsInYAML.ReplaceAllString(text, `"file:`+filepath.Join(d.dir, "secret")+`"`)
	text = keysInYAML.ReplaceAllString(text, "$1["+key+"]")
	text = tlsInYAML.ReplaceAllString(text, "$1# $2")
	file := filepath.Join(d.t.TempDir(), "postern.yaml")
	if err := os.WriteFile(file, []byte(text), 0o600); err != nil {
		d.t.Fatal(err)
	}
	if out, err := d.command("postern config check --config " + file).CombinedOutput(); err != nil {
		d.t.Errorf("%s:%d: %v\n%s\n%s", b.file, b.line, err, text, out)
	}
}

// fromExample finds the lines of a block in one file of examples/, whatever the indentation.
func fromExample(t *testing.T, b block) {
	t.Helper()
	want := unindented(b.text)
	found := false
	err := filepath.WalkDir(examples, func(path string, entry os.DirEntry, err error) error {
		if err != nil || entry.IsDir() {
			return err
		}
		text, err := os.ReadFile(path)
		found = found || strings.Contains(unindented(string(text)), want)
		return err
	})
	if err != nil {
		t.Fatal(err)
	}
	if !found {
		t.Errorf("%s:%d: not the lines of any example:\n%s", b.file, b.line, b.text)
	}
}

func unindented(text string) string {
	var lines []string
	for line := range strings.Lines(text) {
		lines = append(lines, strings.TrimSpace(line))
	}
	return strings.Join(lines, "\n")
}
