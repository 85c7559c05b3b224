package guide

import (
	"fmt"
	"strings"
)

// Section is a part of the man page that no command describes, such as FILES.
type Section struct {
	Title string
	// Items have a heading and a text each. Without a heading a text is a paragraph.
	Items [][2]string
}

// Man writes one page, in section 1, for the program and all its commands.
func Man(root Command, version string, more []Section) string {
	var b strings.Builder
	fmt.Fprintf(&b, ".TH %s 1 \"\" %s \"User Commands\"\n", strings.ToUpper(root.Name), quoteRoff(root.Name+" "+version))
	fmt.Fprintf(&b, ".SH NAME\n%s \\- %s\n", root.Name, roff(strings.TrimSuffix(flat(root.Help), ".")))
	fmt.Fprintf(&b, ".SH SYNOPSIS\n.B %s\n.RI [ command ]\n.RI [ flags ]\n", root.Name)
	fmt.Fprintf(&b, ".SH DESCRIPTION\n%s\n", roff(flat(root.Detail)))
	manFlags(&b, root.Flags)
	b.WriteString(".SH COMMANDS\n")
	for _, c := range all(root, nil)[1:] {
		if len(c.Commands) > 0 && len(c.Flags) == 0 {
			continue // its children say it all
		}
		manCommand(&b, root.Name, c)
	}
	for _, s := range more {
		fmt.Fprintf(&b, ".SH %s\n", roff(s.Title))
		for _, item := range s.Items {
			if item[0] != "" {
				fmt.Fprintf(&b, ".TP\n.B %s\n", roff(item[0]))
			}
			fmt.Fprintf(&b, "%s\n", roff(item[1]))
		}
	}
	return b.String()
}

func manCommand(b *strings.Builder, program string, c placed) {
	fmt.Fprintf(b, ".SS %s\n", quoteRoff(roff(strings.Join(append([]string{program}, c.path...), " ")+usage(c.Arguments))))
	fmt.Fprintf(b, "%s\n", roff(flat(c.Help)))
	manDetail(b, c.Detail)
	manFlags(b, c.Flags)
}

// manDetail keeps indented lines, which are examples, as they are.
func manDetail(b *strings.Builder, detail string) {
	example := false
	for _, line := range strings.Split(strings.TrimSpace(detail), "\n") {
		shown, indented := strings.CutPrefix(line, "    ")
		switch {
		case line == "":
			continue
		case indented && !example:
			b.WriteString(".PP\n.RS 4\n.nf\n")
		case !indented && example:
			b.WriteString(".fi\n.RE\n.PP\n")
		case !indented:
			b.WriteString(".PP\n")
		}
		example = indented
		fmt.Fprintf(b, "%s\n", roff(shown))
	}
	if example {
		b.WriteString(".fi\n.RE\n")
	}
}

func manFlags(b *strings.Builder, flags []Flag) {
	for _, f := range flags {
		name := `\fB` + roff("--"+f.Name) + `\fR`
		if f.Short != 0 {
			name = `\fB` + roff("-"+string(f.Short)) + `\fR, ` + name
		}
		if f.Value != "" {
			name += ` \fI` + roff(f.Value) + `\fR`
		}
		fmt.Fprintf(b, ".TP\n%s\n%s\n", name, roff(flat(f.Help)))
	}
}

func usage(arguments []Argument) string {
	out := ""
	for _, a := range arguments {
		name := a.Name
		if a.Many {
			name += " ..."
		}
		if a.Optional {
			name = "[" + name + "]"
		}
		out += " " + name
	}
	return out
}

// roff escapes what a formatter gives a meaning: backslashes, hyphens that are to be copied, and a full stop or an
// apostrophe at the start of a line.
func roff(text string) string {
	text = strings.NewReplacer(`\`, `\e`, "-", `\-`, "'", `\(aq`, "…", "...", "–", `\(en`).Replace(text)
	if strings.HasPrefix(text, ".") {
		text = `\&` + text
	}
	return text
}

// quoteRoff makes one argument of text.
func quoteRoff(text string) string { return `"` + strings.ReplaceAll(text, `"`, `""`) + `"` }
