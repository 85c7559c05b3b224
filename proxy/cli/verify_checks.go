package cli

import (
	"bytes"
	"errors"
	"fmt"
	"net/http"
	"time"

	"postern/proxy/cli/term"
	"postern/proxy/signing"
)

// The results of a check.
const (
	passed  = "ok"
	failed  = "failed"
	skipped = "skipped" // an earlier failure, or the scheme, leaves nothing to check
)

// check is one step of the verification: headers, timestamp, signature, and first of all body where that is not whole.
type check struct {
	Name   string `json:"check"`
	Result string `json:"result"`
	Detail string `json:"detail,omitempty"`
}

type checks []check

// verdict is the command's JSON.
type verdict struct {
	Valid  bool   `json:"valid"`
	Scheme string `json:"scheme"`
	Checks checks `json:"checks"`
}

// inspect makes every check on its own, so that an old request shows whether its signature is right. Its error is about
// the verifier.
func inspect(v *signing.Verifier, r received) (checks, error) {
	all, err := inspectParts(v, r.header, r.body)
	if err == nil && r.broken != "" {
		all = append(checks{{"body", failed, r.broken}}, all...)
	}
	return all, err
}

func inspectParts(v *signing.Verifier, header http.Header, body []byte) (checks, error) {
	stamp, err := sentAt(v, header, body)
	switch {
	case errors.Is(err, signing.ErrSetup):
		return nil, err
	case errors.Is(err, signing.ErrMissingHeader) || errors.Is(err, signing.ErrMalformed):
		return checks{{"headers", failed, err.Error()}, {Name: "timestamp", Result: skipped}, {Name: "signature", Result: skipped}}, nil
	}
	all := checks{{Name: "headers", Result: passed}, {"timestamp", skipped, "it is not signed"}}
	then := *v
	if !stamp.IsZero() {
		all[1] = checkTime(v, stamp, v.Verify(header, body))
		then.Now = func() time.Time { return stamp }
	}
	return append(all, checkSignature(&then, header, body)), nil
}

// sentAt finds out which timestamp a request has, by looking at it from the far future. It is zero where the scheme
// signs none.
func sentAt(v *signing.Verifier, header http.Header, body []byte) (time.Time, error) {
	future := *v
	future.Tolerance, future.Now = time.Second, func() time.Time { return time.Unix(1<<42, 0) }
	err := future.Verify(header, body)
	if late, ok := errors.AsType[*signing.TimestampError](err); ok {
		return late.At, nil
	}
	return time.Time{}, err
}

func checkTime(v *signing.Verifier, sent time.Time, err error) check {
	if late, ok := errors.AsType[*signing.TimestampError](err); ok {
		return check{"timestamp", failed, fmt.Sprintf("%v; sent %s", late, sent.UTC().Format(time.RFC3339))}
	}
	return check{"timestamp", passed, fmt.Sprintf("sent %s, within %s", sent.UTC().Format(time.RFC3339), v.Tolerance)}
}

// checkSignature looks, where the signature is wrong, for the one harm that captured bodies often take.
func checkSignature(v *signing.Verifier, header http.Header, body []byte) check {
	err := v.Verify(header, body)
	if err == nil {
		return check{Name: "signature", Result: passed}
	}
	for _, end := range []string{"\n", "\r\n"} {
		if short, has := bytes.CutSuffix(body, []byte(end)); has && v.Verify(header, short) == nil {
			return check{"signature", failed, "it matches the body without the line break at its end: was that added when the request was saved?"}
		}
		if v.Verify(header, append(bytes.Clone(body), end...)) == nil {
			return check{"signature", failed, "it matches the body with a line break at its end: was that lost when the request was saved?"}
		}
	}
	return check{"signature", failed, err.Error()}
}

func (c checks) valid() bool {
	for _, one := range c {
		if one.Result == failed {
			return false
		}
	}
	return true
}

// facts are the checks for people.
func (c checks) facts() []fact {
	colors := map[string]term.Color{passed: term.Good, failed: term.Bad, skipped: term.Faint}
	var facts []fact
	for _, one := range c {
		value := one.Result
		if one.Detail != "" {
			value += ": " + one.Detail
		}
		facts = append(facts, fact{one.Name, value, colors[one.Result]})
	}
	result := fact{"result", "valid", term.Good}
	if !c.valid() {
		result = fact{"result", "not valid", term.Bad}
	}
	return append(facts, result)
}
