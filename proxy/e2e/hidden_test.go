package e2e

import (
	"crypto/rand"
	"encoding/base64"
	"encoding/hex"
	"fmt"
	"net/url"
	"strings"
	"testing"
)

// secrets makes words that occur nowhere by chance, and remembers them.
type secrets struct{ words []string }

func (s *secrets) next(kind string) string {
	word := kind + rand.Text()
	s.words = append(s.words, word)
	return word
}

// in tells which of them a text shows, in whatever form.
func (s *secrets) in(text string) (found []string) {
	folded := strings.ToLower(text)
	for _, word := range s.words {
		for _, form := range forms(word) {
			if strings.Contains(folded, strings.ToLower(form)) {
				found = append(found, word)
				break
			}
		}
	}
	return found
}

// forms are the ways in which a word can be in a text. Letters and digits stay as they are in most encodings; the others
// are written out. Case is not looked at.
func forms(word string) []string {
	var percent, escaped, numbers strings.Builder
	for i, c := range []byte(word) {
		fmt.Fprintf(&percent, "%%%02x", c)
		fmt.Fprintf(&escaped, "\\u%04x", c)
		if i > 0 {
			numbers.WriteByte(' ')
		}
		fmt.Fprint(&numbers, c) // as fmt prints bytes
	}
	all := []string{word, url.QueryEscape(word), percent.String(), escaped.String(), numbers.String(), hex.EncodeToString([]byte(word))}
	// Within longer base64 a word begins at any of three places; what its neighbours share with it is cut off.
	for skip := range 3 {
		encoded := base64.StdEncoding.EncodeToString([]byte(strings.Repeat("-", skip) + word))
		first, last := (skip*8+5)/6, (skip+len(word))*8/6
		all = append(all, encoded[first:last])
	}
	return all
}

func TestFormsAreFound(t *testing.T) {
	s := secrets{words: []string{"SECRETword1234567"}}
	for _, text := range []string{
		"a SECRETword1234567 b", "x=%53%45%43%52%45%54%77%6f%72%64%31%32%33%34%35%36%37", "secretWORD1234567.example",
		fmt.Sprint([]byte("SECRETword1234567")), fmt.Sprintf("%x", "SECRETword1234567"),
		base64.StdEncoding.EncodeToString([]byte("aSECRETword1234567!!")), base64.URLEncoding.EncodeToString([]byte("u:SECRETword1234567")),
		base64.RawStdEncoding.EncodeToString([]byte("xyzSECRETword1234567")),
	} {
		if len(s.in(text)) != 1 {
			t.Errorf("not found in %s", text)
		}
	}
	if found := s.in("SECRETword123456 and SECRET"); found != nil {
		t.Errorf("found %v where there is none", found)
	}
}
