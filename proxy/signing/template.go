package signing

import (
	"encoding/base64"
	"encoding/hex"
	"errors"
	"strings"
)

// pattern is a parsed template: how a header's value is made.
type pattern struct {
	before, after string // around the signature, with {id} and {timestamp}
	head, tail    string // what is signed before and after the body, with the same
	encode        func([]byte) string
}

// CheckTemplate tells whether a text can be Config.Template, and if not, what to write. In it {id} and {timestamp} stand
// for the event's ID and the time of sending in seconds, and exactly one of {hex(…)} and {base64(…)} for the HMAC-SHA256
// of what is in the parentheses: {body}, exactly once, and {id} and {timestamp} as wanted. All else is literal:
//
//	{hex({body})}
//	sha256={hex({timestamp}.{body})}
//	ts={timestamp};sig={base64({id}|{timestamp}|{body})}
func CheckTemplate(text string) error {
	_, err := parseTemplate(text)
	return err
}

func parseTemplate(text string) (pattern, error) {
	encode := hex.EncodeToString
	before, signed, found := strings.Cut(text, "{hex(")
	if !found {
		encode = base64.StdEncoding.EncodeToString
		before, signed, found = strings.Cut(text, "{base64(")
	}
	if !found {
		return pattern{}, errors.New("the template has no signature in it; write {hex({body})} or {base64({body})}")
	}
	signed, after, closed := strings.Cut(signed, ")}")
	if !closed {
		return pattern{}, errors.New("the template's signature does not end; write )} behind what is signed")
	}
	head, tail, hasBody := strings.Cut(signed, "{body}")
	if !hasBody {
		return pattern{}, errors.New("the template does not sign the body; write {body} between the parentheses")
	}
	p := pattern{before, after, head, tail, encode}
	return p, p.check()
}

// check looks at the literal parts.
func (p pattern) check() error {
	for _, part := range []string{p.before, p.after, p.head, p.tail} {
		if strings.ContainsAny(placeholders("", "").Replace(part), "{}") {
			return errors.New("the template has a brace in it that is no placeholder; there are {id}, {timestamp}, one {hex(…)} or {base64(…)}, and one {body} within that")
		}
	}
	if strings.ContainsFunc(p.before+p.after, func(r rune) bool { return r < ' ' || r > '~' }) {
		return errors.New("the template makes a header's value, and has a character in it that cannot be sent; use printable ASCII")
	}
	if strings.HasPrefix(p.before, " ") || strings.HasSuffix(p.after, " ") {
		return errors.New("the template begins or ends with a blank, which no receiver would see; remove it")
	}
	return nil
}

// timed tells whether the timestamp is signed.
func (p pattern) timed() bool { return strings.Contains(p.head+p.tail, "{timestamp}") }

func placeholders(id, timestamp string) *strings.Replacer {
	return strings.NewReplacer("{id}", id, "{timestamp}", timestamp)
}

// value makes the header's value.
func (p pattern) value(secret []byte, m message) string {
	fill := placeholders(m.id, m.timestamp)
	h := sum(secret, fill.Replace(p.head), m.body, fill.Replace(p.tail))
	return fill.Replace(p.before) + p.encode(h) + fill.Replace(p.after)
}

// template is the scheme of that name.
type template struct {
	header  string
	pattern pattern
}

func (t template) sign(m message, secrets [][]byte) []Header {
	return []Header{{t.header, t.pattern.value(secrets[0], m)}}
}

// read makes the value again from the ID and the timestamp that Postern sends in headers of their own. They count only
// as far as the pattern has them signed.
func (t template) read(r received) (claim, error) {
	values, err := r.each(t.header, headerEventID, headerDelivery)
	if err != nil {
		return claim{}, err
	}
	m := message{values[1], values[2], r.body}
	c := claim{
		signatures: [][]byte{[]byte(values[0])},
		sum:        func(secret []byte) []byte { return []byte(t.pattern.value(secret, m)) },
	}
	at, err := timestamp(headerDelivery, m.timestamp)
	if err != nil {
		return claim{}, err
	}
	if t.pattern.timed() {
		c.at = at
	}
	return c, nil
}
