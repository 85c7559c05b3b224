package pgstore

import (
	"encoding/json"
	"strconv"
	"unicode/utf16"
	"unicode/utf8"
)

// jsonb takes less than JSON allows: its strings are text, which has no NUL and no half of a surrogate pair, its numbers are
// numeric, and its parser recurses (PostgreSQL, "JSON Types", and numeric's make_result for the bounds).

const (
	// maxDepth is what arrays and objects may be nested. Postgres takes 13,000 levels within the 2 MB of stack that it may
	// use by default, and 600 within the 100 kB that are the least one can set.
	maxDepth = 500
	// maxScale is how many digits numeric has after the point.
	maxScale = 16383
	// maxWeight is the power of ten of the first digit that numeric takes.
	maxWeight = 131071
	// maxExponent is where numeric stops reading an exponent, whatever it would come to.
	maxExponent = 1<<30 - 2
	// maxSpelled bounds the zeros that jsonb would write out beyond what came: a few bytes of 1e131071 are hundreds of
	// kilobytes when somebody reads them, and a body full of them could not be read at all.
	maxSpelled = 1 << 20
)

// jsonbTakes tells whether a body is JSON that jsonb takes as it is.
func jsonbTakes(body []byte) bool {
	if !utf8.Valid(body) || !json.Valid(body) {
		return false
	}
	depth, spelled := 0, 0
	for i := 0; i < len(body); i++ {
		switch c := body[i]; {
		case c == '"':
			end, fine := stringEnd(body, i+1)
			if !fine {
				return false
			}
			i = end
		case c == '{', c == '[':
			if depth++; depth > maxDepth {
				return false
			}
		case c == '}', c == ']':
			depth--
		case c == '-', c >= '0' && c <= '9':
			n := readNumber(body[i:])
			if spelled += n.zeros(); !n.fits() || spelled > maxSpelled {
				return false
			}
			i += n.length - 1
		}
	}
	return true
}

// stringEnd finds the quote that ends a valid string, and tells whether its escapes are characters that text has.
func stringEnd(body []byte, i int) (end int, fine bool) {
	for body[i] != '"' {
		if body[i] != '\\' {
			i++
			continue
		}
		if body[i+1] != 'u' {
			i += 2
			continue
		}
		r := unit(body[i:])
		i += 6
		if utf16.IsSurrogate(r) {
			if r = utf16.DecodeRune(r, unit(body[i:])); r == utf8.RuneError {
				return 0, false
			}
			i += 6
		}
		if r == 0 {
			return 0, false
		}
	}
	return i, true
}

// unit is the UTF-16 code unit that an escape at the start of s names, -1 where there is none.
func unit(s []byte) rune {
	if len(s) < 6 || s[0] != '\\' || s[1] != 'u' {
		return -1
	}
	n, err := strconv.ParseUint(string(s[2:6]), 16, 16)
	if err != nil {
		return -1
	}
	return rune(n)
}

// numeral is a JSON number as numeric looks at it.
type numeral struct {
	length   int  // in the text
	digits   int  // before the point and after it, leading zeros included
	scale    int  // digits after the point, as written
	leading  int  // zeros in front
	exponent int  // within ±maxExponent+1
	zero     bool // no digit but zeros
}

// readNumber reads the valid number at the start of s.
func readNumber(s []byte) (n numeral) {
	n.zero = true
	point := false
	i := 0
	for ; i < len(s); i++ {
		switch c := s[i]; {
		case c >= '0' && c <= '9':
			n.digits++
			if point {
				n.scale++
			}
			if n.zero && c == '0' {
				n.leading++
			} else {
				n.zero = false
			}
		case c == '.':
			point = true
		case c != '-' || i > 0:
			n.length = i
			if c == 'e' || c == 'E' {
				n.readExponent(s, i+1)
			}
			return n
		}
	}
	n.length = i
	return n
}

func (n *numeral) readExponent(s []byte, i int) {
	minus := s[i] == '-'
	if minus || s[i] == '+' {
		i++
	}
	for ; i < len(s) && s[i] >= '0' && s[i] <= '9'; i++ {
		n.exponent = min(10*n.exponent+int(s[i]-'0'), maxExponent+1)
	}
	if minus {
		n.exponent = -n.exponent
	}
	n.length = i
}

// shown is how many digits numeric keeps after the point, zeros included.
func (n *numeral) shown() int { return max(n.scale-n.exponent, 0) }

// weight is the power of ten of the first digit that is not zero.
func (n *numeral) weight() int {
	if n.zero {
		return 0
	}
	return n.digits - n.scale - 1 - n.leading + n.exponent
}

// fits tells whether numeric takes it.
func (n *numeral) fits() bool {
	return n.shown() <= maxScale && n.weight() <= maxWeight && max(n.exponent, -n.exponent) <= maxExponent
}

// zeros is by how much the number becomes longer when it is written without an exponent.
func (n *numeral) zeros() int { return max(max(n.weight()+1, 1)+n.shown()-n.length, 0) }
