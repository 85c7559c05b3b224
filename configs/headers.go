package configs

import (
	"strings"

	"github.com/goccy/go-yaml/ast"

	"postern/proxy/signing"
)

// headerSet is headers.set: a mapping from header names to values, which are secrets.
type headerSet struct{ p *[]Header }

func (h headerSet) nullable() {}

func (h headerSet) read(r *reader, n ast.Node, path string) {
	pairs, ok := r.pairs(n, path)
	if !ok {
		r.add(n, path, "a mapping from header names to values is wanted here, such as { X-Api-Key: \"${PARTNER_KEY}\" }")
		return
	}
	*h.p = nil
	seen := make(map[string]string)
	for _, p := range pairs {
		at := joinPath(path, p.name)
		folded := strings.ToLower(p.name)
		if first, twice := seen[folded]; twice {
			r.add(p.key, at, "the header is there already as %s; names are compared without case, remove one", first)
			continue
		}
		seen[folded] = p.name
		if why := refusedHeader(p.name); why != "" {
			r.add(p.key, at, "%s", why)
			continue
		}
		r.where[at] = r.place(p.value)
		value, ok := r.secretText(p.value, at)
		if !ok {
			continue
		}
		if why := refusedValue(value); why != "" {
			r.add(p.value, at, "%s", why)
			continue
		}
		*h.p = append(*h.p, Header{p.name, value})
	}
}

func (h headerSet) show() any {
	var m mapping
	for _, header := range *h.p {
		m = append(m, item{header.Name, mask(header.Value)})
	}
	if m == nil {
		return nil
	}
	return m
}

func (h headerSet) raw() any { return append([]Header{}, *h.p...) }

// reservedHeaders must not be set: those of one connection (RFC 9110, 7.6.1), those that describe the message or its
// way, and those that Postern writes.
var reservedHeaders = map[string]string{
	"connection":           "belongs to one connection (RFC 9110, 7.6.1) and cannot be set; remove it",
	"keep-alive":           "belongs to one connection (RFC 9110, 7.6.1) and cannot be set; remove it",
	"te":                   "belongs to one connection (RFC 9110, 7.6.1) and cannot be set; remove it",
	"trailer":              "belongs to one connection (RFC 9110, 7.6.1) and cannot be set; remove it",
	"transfer-encoding":    "belongs to one connection (RFC 9110, 7.6.1) and cannot be set; remove it",
	"upgrade":              "belongs to one connection (RFC 9110, 7.6.1) and cannot be set; remove it",
	"content-length":       "follows from the body and cannot be set; remove it",
	"host":                 "follows from the endpoint's url and cannot be set; change url instead",
	"expect":               "is not passed on by Postern and cannot be set; remove it",
	"forwarded":            "is not passed on by Postern and cannot be set; remove it",
	"via":                  "is not passed on by Postern and cannot be set; remove it",
	"x-delivery-timestamp": "is written by Postern for every attempt and cannot be set; remove it",
}

// refusedHeader tells why a header of this name cannot be set; empty where it can.
func refusedHeader(name string) string {
	folded := strings.ToLower(name)
	why, reserved := reservedHeaders[folded]
	switch {
	case !isToken(name):
		return "not a header name (RFC 9110, 5.6.2); use letters, digits and hyphens"
	case reserved:
		return "the header " + why
	case strings.HasPrefix(folded, "proxy-"):
		return "the headers Proxy-… belong to one connection (RFC 9110, 7.6.1) and cannot be set; for a proxy's credentials put them into outbound_proxy"
	case strings.HasPrefix(folded, "x-forwarded-"):
		return "the headers X-Forwarded-… are not passed on by Postern and cannot be set; remove it"
	case strings.HasPrefix(folded, "postern-"):
		return "the headers Postern-… are Postern's own and cannot be set; remove it"
	}
	return ""
}

// refusedValue tells why a header's value cannot be sent, without repeating it (RFC 9110, 5.5).
func refusedValue(value string) string {
	if strings.TrimSpace(value) == "" {
		return "the header's value is empty; write one, or remove the header"
	}
	if value != strings.Trim(value, " \t") {
		return "the header's value begins or ends with a blank, which no receiver would see; remove it"
	}
	if strings.ContainsAny(value, "\r\n") {
		return "the header's value has a line break (a control character) in it, which cannot be sent; write one value, on one line of its own file"
	}
	for i := range len(value) {
		if c := value[i]; c < ' ' && c != '\t' || c == 0x7f {
			return "the header's value has a control character in it, which cannot be sent; remove it"
		}
	}
	return ""
}

// isToken tells whether name is a token of RFC 9110, 5.6.2.
func isToken(name string) bool {
	for i := range len(name) {
		c := name[i]
		letter := c|0x20 >= 'a' && c|0x20 <= 'z'
		if !letter && (c < '0' || c > '9') && !strings.ContainsRune("!#$%&'*+-.^_`|~", rune(c)) {
			return false
		}
	}
	return name != ""
}

func parseHeaderName(text string) (string, error) {
	if text == "" {
		return "", nil
	}
	if why := refusedHeader(text); why != "" {
		return "", refusal(why)
	}
	return text, nil
}

func parseTemplate(text string) (string, error) {
	if text == "" {
		return "", nil
	}
	return text, signing.CheckTemplate(text)
}

// refusal makes an error of a sentence.
type refusal string

func (r refusal) Error() string { return string(r) }
