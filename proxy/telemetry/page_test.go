package telemetry

import (
	"bytes"
	"fmt"
	"regexp"
	"slices"
	"strconv"
	"strings"
	"testing"
	"unicode/utf8"
)

// page is an exposition page as a scraper reads it: values by series, types by family.
type page struct {
	values map[string]float64 // keyed by name and rendered, unescaped label pairs: name|label=value|…
	kinds  map[string]string
	order  []string // series, in the order of the page
}

var (
	headLine   = regexp.MustCompile(`^# (HELP|TYPE) ([a-zA-Z_:][a-zA-Z0-9_:]*) (.+)$`)
	nameStart  = regexp.MustCompile(`^[a-zA-Z_:][a-zA-Z0-9_:]*`)
	labelStart = regexp.MustCompile(`^([a-zA-Z_][a-zA-Z0-9_]*)="`)
	unescape   = strings.NewReplacer(`\\`, `\`, `\"`, `"`, `\n`, "\n")
)

// crossCheck, where set, reads every page of these tests with a parser of somebody else.
var crossCheck func(page []byte) error

// scrape renders m's page and reads it strictly: whatever Prometheus refuses fails the test.
func scrape(t *testing.T, m *Metrics) page {
	t.Helper()
	var out bytes.Buffer
	if err := m.WritePrometheus(&out); err != nil {
		t.Fatalf("WritePrometheus: %v", err)
	}
	p, err := parsePage(out.Bytes())
	if err != nil {
		t.Fatalf("the page is not valid: %v\n%s", err, out.String())
	}
	return p
}

func parsePage(text []byte) (page, error) {
	p := page{values: map[string]float64{}, kinds: map[string]string{}}
	if !utf8.Valid(text) {
		return p, fmt.Errorf("not UTF-8")
	}
	if crossCheck != nil {
		if err := crossCheck(text); err != nil {
			return p, err
		}
	}
	body, ended := strings.CutSuffix(string(text), "\n")
	if !ended {
		return p, fmt.Errorf("the last line has no end")
	}
	for line := range strings.SplitSeq(body, "\n") {
		if err := p.addLine(line); err != nil {
			return p, fmt.Errorf("%w in %q", err, line)
		}
	}
	return p, p.checkFamilies()
}

func (p *page) addLine(line string) error {
	if strings.HasPrefix(line, "#") {
		head := headLine.FindStringSubmatch(line)
		if head == nil {
			return fmt.Errorf("a comment that is neither HELP nor TYPE")
		}
		if head[1] == "TYPE" {
			if _, twice := p.kinds[head[2]]; twice {
				return fmt.Errorf("a second TYPE")
			}
			p.kinds[head[2]] = head[3]
		}
		return nil
	}
	key, rest, err := parseSeries(line)
	if err != nil {
		return err
	}
	value, err := strconv.ParseFloat(strings.TrimPrefix(rest, " "), 64)
	if err != nil || !strings.HasPrefix(rest, " ") {
		return fmt.Errorf("no value after the series")
	}
	if _, twice := p.values[key]; twice {
		return fmt.Errorf("a second sample of one series")
	}
	p.values[key] = value
	p.order = append(p.order, key)
	return nil
}

func parseSeries(line string) (key, rest string, err error) {
	key = nameStart.FindString(line)
	if key == "" {
		return "", "", fmt.Errorf("no metric name")
	}
	rest, labelled := strings.CutPrefix(line[len(key):], "{")
	for labelled {
		start := labelStart.FindStringSubmatch(rest)
		if start == nil {
			return "", "", fmt.Errorf("no label name")
		}
		rest = rest[len(start[0]):]
		end := 0
		for end < len(rest) && rest[end] != '"' {
			if rest[end] == '\\' {
				if end+1 == len(rest) || !strings.ContainsRune(`\"n`, rune(rest[end+1])) {
					return "", "", fmt.Errorf("an escape that the format does not know")
				}
				end++
			}
			end++
		}
		if end >= len(rest) {
			return "", "", fmt.Errorf("a label value without an end")
		}
		key += "|" + start[1] + "=" + unescape.Replace(rest[:end])
		rest = rest[end+1:]
		if after, closed := strings.CutPrefix(rest, "}"); closed {
			return key, after, nil
		}
		rest = strings.TrimLeft(strings.TrimPrefix(rest, ","), " ")
	}
	return key, rest, nil
}

// checkFamilies demands what the format asks for beyond single lines: all of a family stands together, and ours have
// a TYPE.
func (p *page) checkFamilies() error {
	var families []string
	for _, key := range p.order {
		name := p.family(key)
		if len(families) == 0 || families[len(families)-1] != name {
			families = append(families, name)
		}
		if strings.HasPrefix(name, "postern_") && p.kinds[name] == "" {
			return fmt.Errorf("%s has no TYPE", name)
		}
	}
	slices.Sort(families)
	for i := 1; i < len(families); i++ {
		if families[i] == families[i-1] {
			return fmt.Errorf("the family %s is in two places", families[i])
		}
	}
	return nil
}

// family is the name that the TYPE line of a series has.
func (p *page) family(key string) string {
	name, _, _ := strings.Cut(key, "|")
	for _, suffix := range []string{"_bucket", "_sum", "_count"} {
		if base, ok := strings.CutSuffix(name, suffix); ok && (p.kinds[base] == histogram || strings.HasPrefix(name, "go_")) {
			return base
		}
	}
	return name
}

// want checks one series: its type and its value.
func (p page) want(t *testing.T, kind, key string, value float64) {
	t.Helper()
	got, ok := p.values[key]
	switch {
	case !ok:
		t.Errorf("%s is not on the page", key)
	case p.kinds[p.family(key)] != kind:
		t.Errorf("%s is a %s, want %s", key, p.kinds[p.family(key)], kind)
	case got != value:
		t.Errorf("%s = %v, want %v", key, got, value)
	}
}

// count tells how many series of one name are on the page.
func (p page) count(name string) (n int) {
	for key := range p.values {
		if key == name || strings.HasPrefix(key, name+"|") {
			n++
		}
	}
	return n
}

func TestThePageReaderIsStrict(t *testing.T) {
	for _, bad := range []string{
		"a 1", "a{b=\"c\"} 1\na{b=\"c\"} 2\n", "a{b=\"c} 1\n", "a{b=\"\\t\"} 1\n", "a{b=\"\\\"} 1\n", "a{b=\"x\"y\"} 1\n",
		"a{b=\"\xff\"} 1\n", "a\n", "a one\n", "1a 1\n", "# COMMENT x y\n", "# TYPE a counter\n# TYPE a counter\n",
		"a 1\nb 1\na{x=\"y\"} 1\n", "postern_x 1\n",
	} {
		if _, err := parsePage([]byte(bad)); err == nil {
			t.Errorf("%q is read without an error", bad)
		}
	}
}
