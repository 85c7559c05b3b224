package client

import (
	"bytes"
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"math"
	"net/http"
	"net/url"
	"time"
)

// Ingest is the door that applications post to.
type Ingest struct{ *conn }

// NewIngest prepares a client; nothing is connected yet. An error means that the address or the token file is wrong.
func NewIngest(cfg Config) (*Ingest, error) {
	c, err := dial(cfg, DefaultIngest)
	if err != nil {
		return nil, err
	}
	return &Ingest{c}, nil
}

// Message is one postback to hand over. Either URL or To is set.
type Message struct {
	Method string
	// URL is the absolute target; its bytes go to the wire unchanged.
	URL string
	// To is a configured endpoint's name, and Suffix the path and query appended to its url.
	To, Suffix string
	// Headers are the postback's own, and any of Postern's control headers; order within a name is kept.
	Headers []Header
	Body    []byte
	// Wait asks for the receiver's answer, within this time; zero does not wait.
	Wait time.Duration
}

// Header is one header field.
type Header struct{ Name, Value string }

// Answer is what ingest said.
type Answer struct {
	Status int
	// EventID is the accepted event's.
	EventID string
	// Accepted is the answer's JSON, where Postern itself answered.
	Accepted Accepted
	// Waited tells that Status, Header and Body are the receiver's own.
	Waited bool
	Header http.Header
	Body   []byte
}

// Accepted is the body of a 202, or of the 200 for a duplicate.
type Accepted struct {
	ID        string `json:"id"`
	Endpoint  string `json:"endpoint"`
	State     string `json:"state"`
	Duplicate bool   `json:"duplicate"`
}

// Send hands m over. An error is an ArgumentError, an UnreachableError or a RefusedError.
func (i *Ingest) Send(ctx context.Context, m Message) (Answer, error) {
	ctx, cancel := context.WithTimeout(ctx, callTimeout)
	defer cancel()
	r, err := i.request(ctx, m)
	if err != nil {
		return Answer{}, &ArgumentError{err}
	}
	got, err := i.do(r)
	if err != nil {
		return Answer{}, err
	}
	a := Answer{
		Status: got.status, Header: got.header, Body: got.body,
		EventID: got.header.Get("Postern-Event-Id"),
		Waited:  got.header.Get("Preference-Applied") != "",
	}
	switch {
	case a.Waited:
		return a, nil
	case got.status < 200 || got.status > 299:
		return a, refusal(got)
	}
	if err := json.Unmarshal(got.body, &a.Accepted); err != nil || a.Accepted.ID == "" {
		return a, errors.New("what answered is not a Postern: its 2xx has no event ID in it")
	}
	return a, nil
}

// request names the target by header or by path, and never lets net/url touch its bytes.
func (i *Ingest) request(ctx context.Context, m Message) (*http.Request, error) {
	r, err := http.NewRequestWithContext(ctx, m.Method, i.base+"/", bytes.NewReader(m.Body))
	if err != nil {
		return nil, fmt.Errorf("the method is not a valid HTTP token")
	}
	for _, h := range m.Headers {
		if err := checkHeader(h); err != nil {
			return nil, err
		}
		r.Header.Add(h.Name, h.Value)
	}
	if m.To == "" {
		if err := sendable(m.URL); err != nil {
			return nil, err
		}
		r.Header.Set("Postern-Url", m.URL)
	} else if err := setNamed(r, m); err != nil {
		return nil, err
	}
	if m.Wait > 0 {
		r.Header.Add("Prefer", fmt.Sprintf("wait=%d", WholeSeconds(m.Wait)/time.Second))
	}
	if i.token != "" {
		r.Header.Set("Postern-Token", i.token)
	}
	return r, nil
}

// WholeSeconds is what a wait is asked for as: RFC 7240 has whole seconds, and less than was typed would be too little.
func WholeSeconds(wait time.Duration) time.Duration {
	return time.Duration(math.Ceil(wait.Seconds())) * time.Second
}

// setNamed writes /to/NAME with the suffix exactly as it was given: an opaque URL is put on the request line as it is.
func setNamed(r *http.Request, m Message) error {
	if m.Suffix != "" {
		if m.Suffix[0] != '/' && m.Suffix[0] != '?' {
			return errors.New("what follows the endpoint's name must begin with / or ?")
		}
		if err := sendable(m.Suffix); err != nil {
			return err
		}
	}
	r.URL = &url.URL{Scheme: r.URL.Scheme, Host: r.URL.Host, Opaque: "/to/" + url.PathEscape(m.To) + m.Suffix}
	return nil
}

// sendable refuses what would break the request itself; everything else about a target is the server's to judge.
func sendable(text string) error {
	if text == "" {
		return errors.New("the target is missing")
	}
	for i := range len(text) {
		if c := text[i]; c <= ' ' || c >= 0x7f {
			return errors.New("the target has a blank, control or non-ASCII byte in it; percent-encode it")
		}
	}
	return nil
}
