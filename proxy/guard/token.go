package guard

import (
	"crypto/sha256"
	"crypto/subtle"
	"net/http"
	"strings"

	"postern/proxy/problem"
)

// checkToken returns nil where no token is asked for or the request has one of those in force.
func (g *Guard) checkToken(r *http.Request) *problem.Problem {
	if g.tokens == nil {
		return nil
	}
	given, ok := g.givenToken(r)
	if !ok {
		return g.unauthorized("missing")
	}
	// Hashes have one length, so that the comparison tells nothing about a token's length either. All are compared:
	// which of them fitted does not show in the time.
	sum := sha256.Sum256([]byte(given))
	found := 0
	for _, token := range g.tokens() {
		want := sha256.Sum256(token)
		fits := subtle.ConstantTimeCompare(sum[:], want[:])
		if len(token) > 0 { // an empty token file opens nothing
			found |= fits
		}
	}
	if found == 0 {
		return g.unauthorized("wrong")
	}
	return nil
}

// givenToken reads the one token that the request has. Two of them are none: what a proxy in front has checked must be
// what is checked here.
func (g *Guard) givenToken(r *http.Request) (token string, ok bool) {
	if g.tokenHeader != "" {
		values := r.Header[g.tokenHeader]
		return strings.Join(values, ""), len(values) == 1 && values[0] != ""
	}
	values := r.Header["Authorization"]
	if len(values) != 1 {
		return "", false
	}
	// RFC 9110, section 11.1: the scheme's name is case-insensitive.
	scheme, token, _ := strings.Cut(values[0], " ")
	token = strings.TrimLeft(token, " ")
	return token, strings.EqualFold(scheme, "Bearer") && token != ""
}

// unauthorized names the field to use. RFC 9110, section 15.5.2, asks for a challenge in every 401.
func (g *Guard) unauthorized(what string) *problem.Problem {
	challenge, use := "Bearer", "Authorization: Bearer TOKEN"
	if g.tokenHeader != "" {
		challenge, use = g.tokenHeader, g.tokenHeader+": TOKEN"
	}
	return &problem.Problem{
		Status: http.StatusUnauthorized,
		Slug:   "token",
		Title:  "A token is needed",
		Detail: "The token of this listener is " + what + ". Send the header " + use + " with the content of the listener's token_file.",
		Header: http.Header{"Www-Authenticate": {challenge + ` realm="postern"`}},
	}
}
