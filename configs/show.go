package configs

import (
	"encoding/json"
	"fmt"
	"strconv"
	"strings"
)

// mapping is a YAML mapping in order, for Show.
type mapping []item

type item struct {
	key   string
	value any
}

// Show writes the configuration that is in force as YAML, every endpoint with its complete policy. Secrets are
// replaced by ***, queries by ?…, and user info is left out; apart from those it can be loaded again.
func Show(c *Config) []byte {
	var b strings.Builder
	m, _ := c.fields().show().(mapping)
	writeMapping(&b, m, "", "")
	return []byte(b.String())
}

// writeMapping writes a block mapping; first is what stands before its first key.
func writeMapping(b *strings.Builder, m mapping, first, indent string) {
	for i, it := range m {
		lead := indent
		if i == 0 {
			lead = first
		}
		b.WriteString(lead + writeScalar(it.key) + ":")
		switch v := it.value.(type) {
		case mapping:
			writeNested(b, v, indent)
		case []any:
			writeList(b, v, indent)
		default:
			b.WriteString(" " + writeScalar(v) + "\n")
		}
	}
}

func writeNested(b *strings.Builder, m mapping, indent string) {
	if len(m) == 0 {
		b.WriteString(" {}\n")
		return
	}
	b.WriteByte('\n')
	writeMapping(b, m, indent+"  ", indent+"  ")
}

// writeList writes a list of mappings as a block, and one of scalars on one line.
func writeList(b *strings.Builder, list []any, indent string) {
	if len(list) > 0 {
		if _, ok := list[0].(mapping); ok {
			b.WriteByte('\n')
			for _, v := range list {
				m, _ := v.(mapping)
				writeMapping(b, m, indent+"  - ", indent+"    ")
			}
			return
		}
	}
	texts := make([]string, len(list))
	for i, v := range list {
		texts[i] = writeScalar(v)
	}
	b.WriteString(" [" + strings.Join(texts, ", ") + "]\n")
}

// writeScalar quotes every text that YAML could take for something else. A JSON string is a YAML one.
func writeScalar(v any) string {
	switch v := v.(type) {
	case string:
		if isPlain(v) {
			return v
		}
		var quoted strings.Builder
		enc := json.NewEncoder(&quoted)
		enc.SetEscapeHTML(false)
		if err := enc.Encode(v); err != nil {
			return `""` // cannot happen: a string always encodes
		}
		return strings.TrimSuffix(quoted.String(), "\n")
	case float64:
		return strconv.FormatFloat(v, 'g', -1, 64)
	}
	return fmt.Sprint(v)
}

// isPlain tells whether a text means itself without quotes.
func isPlain(text string) bool {
	for i := range len(text) {
		c := text[i]
		letter := c|0x20 >= 'a' && c|0x20 <= 'z'
		digit := c >= '0' && c <= '9'
		if !letter && !digit && (i == 0 && c != '/' || !strings.ContainsRune("-_./", rune(c))) {
			return false
		}
	}
	switch strings.ToLower(text) {
	case "", "true", "false", "null", "yes", "no", "on", "off":
		return false
	}
	_, notFloat := strconv.ParseFloat(text, 64)
	_, notInt := strconv.ParseInt(text, 0, 64)
	return notFloat != nil && notInt != nil
}
