package admin

import (
	"regexp"
	"strconv"
	"strings"
	"time"

	"postern/spool"
)

// filter selects dead letters, in a query or in a JSON body. What is not set selects everything.
type filter struct {
	Endpoint string `json:"endpoint"`
	Status   int    `json:"status"`
	Error    string `json:"error"`
	Since    string `json:"since"`
	Until    string `json:"until"`
}

var (
	class     = regexp.MustCompile(`^[a-z][a-z0-9_]{0,63}$`)
	badStatus = badRequest("status: must be a status code from 100 to 999; select failures without an answer by error, such as timeout.")
)

// query checks a filter and turns it into one of the spool's.
func (f filter) query(now time.Time) (q spool.Query, err error) {
	q = spool.Query{State: spool.StateDeadLetter, Endpoint: origin(f.Endpoint), Status: f.Status, Error: f.Error}
	if f.Status != 0 && (f.Status < 100 || f.Status > 999) {
		return q, badStatus
	}
	if f.Error != "" && !class.MatchString(f.Error) {
		return q, badRequest("error: must be a class such as timeout, connect, dns, tls, connection, redirect, body_rule, blocked_address, invalid_request or http_503.")
	}
	if q.Since, err = instant("since", f.Since, now); err != nil {
		return q, err
	}
	if q.Until, err = instant("until", f.Until, now); err != nil {
		return q, err
	}
	if !q.Until.IsZero() && q.Until.Before(q.Since) {
		return q, badRequest("until: lies before since.")
	}
	return q, nil
}

// instant reads an RFC 3339 time or a duration back from now; days are understood as well, as 7d.
func instant(name, text string, now time.Time) (time.Time, error) {
	if text == "" {
		return time.Time{}, nil
	}
	// In a query a + that was not percent-encoded arrives as a blank.
	if at, err := time.Parse(time.RFC3339, strings.ReplaceAll(text, " ", "+")); err == nil {
		return at, nil
	}
	if back, ok := duration(text); ok && back >= 0 {
		return now.Add(-back), nil
	}
	return time.Time{}, badRequest("%s: must be an RFC 3339 time such as 2026-01-31T08:00:00Z, or a duration back from now such as 90m, 24h or 7d.", name)
}

func duration(text string) (time.Duration, bool) {
	if days, ok := strings.CutSuffix(text, "d"); ok {
		n, err := strconv.ParseUint(days, 10, 16)
		return time.Duration(n) * 24 * time.Hour, err == nil && n <= maxHours/24
	}
	d, err := time.ParseDuration(text)
	return d, err == nil
}
