package configs

import (
	"flag"
	"fmt"
	"os"
	"strings"
	"testing"
)

// update is set by `make docs`.
var update = flag.Bool("update", false, "write docs/configuration.md anew")

const referenceHead = `# Configuration reference

For whoever writes a configuration. Made from the code by ` + "`make docs`" + `; a test holds it there.

Without a file everything has its default. ` + "`postern config init`" + ` writes a first file, [full.yaml](../configs/full.yaml) has every
setting with its default and a comment, ` + "`postern config check`" + ` names mistakes by line, and ` + "`postern config show`" + ` prints what is in
force. SIGHUP reads the file again; what is marked *restart* takes effect with the next start.

Durations are written as ` + "`500ms`, `30s`, `1h30m`" + `, sizes in bytes or as ` + "`64KiB`, `1GiB`, `1GB`" + `. Secrets may be ` + "`${VAR}`" + ` or ` + "`file:PATH`" + `,
relative to the file.
`

// referenceDocument renders Reference as Markdown. Of endpoints[] it leaves out what defaults has as well.
func referenceDocument() string {
	var b strings.Builder
	b.WriteString(referenceHead)
	var rows []Setting
	common := map[string]bool{}
	for _, s := range Reference() {
		if rest, ok := strings.CutPrefix(s.Path, "defaults."); ok {
			common[rest] = true
		}
	}
	for _, s := range Reference() {
		if rest, ok := strings.CutPrefix(s.Path, "endpoints[]."); ok && common[rest] {
			continue
		}
		rows = append(rows, s)
	}
	var parts []string
	by := map[string][]Setting{}
	for _, s := range rows {
		top, _, nested := strings.Cut(s.Path, ".")
		if !nested && !s.Section && top != "endpoints" {
			top = ""
		}
		if by[top] == nil {
			parts = append(parts, top)
		}
		by[top] = append(by[top], s)
	}
	for _, part := range parts {
		referencePart(&b, part, by[part])
	}
	return b.String()
}

func referencePart(b *strings.Builder, part string, rows []Setting) {
	switch part {
	case "":
		b.WriteString("\n## At the top\n\n")
	case "endpoints":
		fmt.Fprintf(b, "\n## `endpoints`\n\n%s Its own are:\n", rows[0].Doc)
		return
	case "endpoints[]":
		b.WriteString("\n")
	default:
		fmt.Fprintf(b, "\n## `%s`\n\n%s\n\n", part, rows[0].Doc)
		rows = rows[1:]
	}
	b.WriteString("| key | default | |\n| --- | --- | --- |\n")
	for _, s := range rows {
		fmt.Fprintf(b, "| `%s` | %s | %s |\n", s.Path, code(s.Default), row(s))
	}
}

func code(value string) string {
	if value == "" {
		return ""
	}
	return "`" + strings.ReplaceAll(value, "|", `\|`) + "`"
}

func row(s Setting) string {
	text := strings.ReplaceAll(s.Doc, "|", `\|`)
	if s.Restart {
		text += " *restart*"
	}
	return text
}

// The committed reference is what the code says.
func TestReferenceDocument(t *testing.T) {
	const file = "../docs/configuration.md"
	want := referenceDocument()
	if *update {
		if err := os.WriteFile(file, []byte(want), 0o644); err != nil {
			t.Fatal(err)
		}
	}
	got, err := os.ReadFile(file)
	if err != nil {
		t.Fatal(err)
	}
	if string(got) != want {
		t.Error("docs/configuration.md is not what the code says: run `make docs`")
	}
	for _, s := range Reference() {
		path := strings.Replace(s.Path, "endpoints[].", "", 1)
		if !s.Section && !strings.Contains(want, "`"+s.Path+"`") && !strings.Contains(want, "`defaults."+path+"`") {
			t.Errorf("%s is not in the reference", s.Path)
		}
	}
}
