package admin

import (
	"bytes"
	"encoding/json"
	"errors"
	"io"
	"net/http"
	"strconv"
	"strings"
	"time"

	"postern/proxy/problem"
)

// readBody is strict: a misspelt filter would select everything. An empty body is refused for the same reason; {} says
// that everything is meant.
func readBody(r *http.Request, into *bulkBody) error {
	raw, err := io.ReadAll(r.Body)
	if _, tooBig := errors.AsType[*http.MaxBytesError](err); tooBig {
		return refusal{problem.Problem{Status: 413, Slug: "too-large", Title: "The body is too large", Detail: "This call takes a small JSON object."}}
	}
	if err != nil {
		return badRequest("The body could not be read.")
	}
	const takes = "This call takes a JSON object with any of endpoint, status, error, since, until, dry_run and, for a replay, rate; {} selects all dead letters."
	if len(bytes.TrimSpace(raw)) == 0 {
		return badRequest("The body is empty. " + takes)
	}
	dec := json.NewDecoder(bytes.NewReader(raw))
	dec.DisallowUnknownFields()
	if err := dec.Decode(into); err != nil {
		if mistyped, ok := errors.AsType[*json.UnmarshalTypeError](err); ok && mistyped.Field != "" {
			return badRequest("%s: has the wrong JSON type. "+takes, strings.TrimPrefix(mistyped.Field, "filter."))
		}
		return badRequest("The body is not JSON, or has a field that this call does not take. " + takes)
	}
	if _, err := dec.Token(); err != io.EOF {
		return badRequest("Something follows the JSON object. " + takes)
	}
	return nil
}

// Bounds of a paced replay, in events per second: one in three hours, and more than one disk commits.
const (
	minRate = 0.0001
	maxRate = 100_000
)

// eventRate reads events per second, as a number or as a limit is written: "100/1m". Zero means that none is given.
func eventRate(raw json.RawMessage) (float64, error) {
	text := string(raw)
	if text == "" || text == "null" {
		return 0, nil
	}
	rate, err := strconv.ParseFloat(text, 64)
	if quoted := ""; json.Unmarshal(raw, &quoted) == nil {
		rate, err = parseRate(quoted)
	}
	if err != nil || !(rate >= minRate && rate <= maxRate) {
		return 0, badRequest(`rate: must be events per second, as a number (2.5) or as "100/1m", from %v to %v a second; leave it out to replay at once.`, minRate, maxRate)
	}
	return rate, nil
}

func parseRate(text string) (float64, error) {
	events, window, ok := strings.Cut(text, "/")
	if !ok {
		return strconv.ParseFloat(text, 64)
	}
	n, err := strconv.ParseUint(events, 10, 32)
	if err != nil {
		return 0, err
	}
	per, err := time.ParseDuration(window)
	if err != nil || per <= 0 {
		return 0, errors.New("not a duration")
	}
	return float64(n) / per.Seconds(), nil
}
