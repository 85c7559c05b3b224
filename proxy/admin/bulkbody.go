package admin

import (
	"bytes"
	"encoding/json"
	"errors"
	"io"
	"net/http"
	"slices"
	"strconv"
	"strings"
	"time"

	"postern/proxy/problem"
)

const takes = "This call takes a JSON object with any of endpoint, status, error, since, until, or with ids (a list of event IDs) instead of those, dry_run and, for a replay, rate; {} selects all dead letters."

// bulkFields are the names that the JSON object may have, exactly so.
var bulkFields = []string{"ids", "endpoint", "status", "error", "since", "until", "dry_run", "rate"}

// readBody is strict: a misspelt filter would select everything, and so would one that a script filled from a variable
// that was not set. An empty body is refused for the same reason; {} says that everything is meant.
func readBody(r *http.Request, into *bulkBody) error {
	raw, err := io.ReadAll(r.Body)
	if _, tooBig := errors.AsType[*http.MaxBytesError](err); tooBig {
		return refusal{problem.Problem{Status: 413, Slug: "too-large", Title: "The body is too large", Detail: "This call takes a small JSON object."}}
	}
	if err != nil {
		return badRequest("The body could not be read.")
	}
	if len(bytes.TrimSpace(raw)) == 0 {
		return badRequest("The body is empty. " + takes)
	}
	if !json.Valid(raw) {
		return notJSON(raw)
	}
	if err := checkFields(raw); err != nil {
		return err
	}
	if err := json.Unmarshal(raw, into); err != nil {
		if mistyped, ok := errors.AsType[*json.UnmarshalTypeError](err); ok && mistyped.Field != "" {
			return badRequest("%s: has the wrong JSON type. "+takes, strings.TrimPrefix(mistyped.Field, "filter."))
		}
		return badRequest("The body is not understood. " + takes)
	}
	return nil
}

// notJSON tells two objects in a row from what is no JSON at all.
func notJSON(raw []byte) error {
	var first json.RawMessage
	if json.NewDecoder(bytes.NewReader(raw)).Decode(&first) == nil {
		return badRequest("Something follows the JSON object. " + takes)
	}
	return badRequest("The body is not JSON. " + takes)
}

// checkFields looks at the object as it was written. encoding/json would take a name in any case, let the second of two
// equal names win, and pass over null.
func checkFields(raw []byte) error {
	dec := json.NewDecoder(bytes.NewReader(raw))
	if open, err := dec.Token(); err != nil || open != json.Delim('{') {
		return badRequest("The body is no JSON object. " + takes)
	}
	seen := make(map[string]bool)
	for dec.More() {
		key, err := dec.Token()
		name, _ := key.(string)
		var value json.RawMessage
		if err == nil {
			err = dec.Decode(&value)
		}
		switch {
		case err != nil:
			return badRequest("The body is not JSON. " + takes)
		case !slices.Contains(bulkFields, name):
			return badRequest("The body has a field that this call does not take; names are in lower case. " + takes)
		case seen[name]:
			return badRequest("%s: given twice; give it once. "+takes, name)
		case isEmpty(name, string(value)):
			return badRequest("%s: given, but empty. Leave it out to select by the others. "+takes, name)
		}
		seen[name] = true
	}
	return nil
}

// isEmpty tells what says nothing although it is there.
func isEmpty(name, value string) bool {
	return value == "null" || value == `""` || name == "status" && strings.TrimPrefix(value, "-") == "0"
}

// Bounds of a paced replay, in events per second: one in three hours, and more than one disk commits.
const (
	minRate = 0.0001
	maxRate = 100_000
)

// eventRate reads events per second, as a number or as a limit is written: "100/1m". Zero means that none is given.
func eventRate(raw json.RawMessage) (float64, error) {
	text := string(raw)
	if text == "" {
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
