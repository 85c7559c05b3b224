package cli

import (
	"context"
	"fmt"
	"io"
	"net/textproto"
	"os"
	"strings"
	"time"

	"postern/proxy/cli/term"
	"postern/proxy/client"
)

type sendCmd struct {
	jsonFlag
	Target         string        `arg:"" optional:"" name:"url" help:"Absolute URL; with --to the path and query that follow the endpoint's own."`
	To             string        `placeholder:"NAME" help:"Configured endpoint to send to."`
	Method         string        `short:"X" placeholder:"METHOD" help:"Method: GET without data, POST with it, unless given."`
	Data           *string       `short:"d" placeholder:"DATA" help:"Body as it stands; @FILE reads a file, - standard input. No Content-Type is added."`
	Header         []string      `short:"H" sep:"none" placeholder:"NAME: VALUE" help:"Header of the postback; may be repeated."`
	EventID        string        `name:"event-id" placeholder:"ID" help:"The event's ID instead of a new one."`
	IdempotencyKey string        `placeholder:"KEY" help:"Accept this postback once only, however often it is sent."`
	Delay          time.Duration `placeholder:"DURATION" help:"First attempt no sooner than this."`
	Wait           time.Duration `placeholder:"DURATION" help:"Wait this long (up to 60s) for the receiver's answer, and print it."`
	Ingest         string        `placeholder:"ADDR" fromenv:"POSTERN_INGEST" group:"admin" help:"Ingest of the running Postern: http://HOST:PORT or unix:PATH. Unless given: the address in --config, else http://127.0.0.1:8089."`
	TokenFile      string        `placeholder:"FILE" fromenv:"POSTERN_INGEST_TOKEN_FILE" group:"admin" help:"File with ingest's token, where it asks for one."`
	Config         string        `short:"c" placeholder:"FILE" fromenv:"POSTERN_CONFIG" group:"admin" help:"Take address and token file from this configuration file, unless they are given; one that does not tell the address is refused."`
}

// Help is shown under the command's usage.
func (sendCmd) Help() string {
	return `Exit code 0: the postback is on disk and will be delivered. With --wait the receiver's answer is printed if it came in time; if not, the postback is accepted all the same.

Example:

    postern send 'https://partner.example/pb?cid=42'
    postern send --to partner-a -d @order.json -H 'Content-Type: application/json' --wait 10s
    postern send --to partner-a '/extra?cid=42' --idempotency-key order-42`
}

// Run hands one postback over.
func (c *sendCmd) Run(s *session) error {
	message, err := c.message(s)
	if err != nil {
		return err
	}
	ingest, err := c.open(s)
	if err != nil {
		return err
	}
	defer ingest.Close()
	start := time.Now()
	answer, err := ingest.Send(context.Background(), message)
	took := time.Since(start)
	if unreachable, ok := asUnreachable(err); ok {
		return fmt.Errorf("%w\nStart one with `postern run`, or point elsewhere with --ingest ADDRESS (POSTERN_INGEST)", unreachable)
	}
	if err != nil {
		return err
	}
	return c.print(s, answer, took)
}

func (c *sendCmd) open(s *session) (*client.Ingest, error) {
	place := whereabouts{address: c.Ingest, tokenFile: c.TokenFile, config: c.Config}
	return connect(s, place, ingestFace, client.NewIngest)
}

// message reads the arguments; what is wrong with them is wrong usage.
func (c *sendCmd) message(s *session) (client.Message, error) {
	m := client.Message{Method: c.Method, To: c.To, Wait: c.Wait}
	switch {
	case c.To != "":
		m.Suffix = c.Target
	case c.Target == "":
		return m, usage("say where to: an absolute URL, or --to NAME")
	default:
		m.URL = c.Target
	}
	if c.Delay < 0 {
		return m, usage("--delay must not be negative: an event cannot be sent before now")
	}
	if c.Wait > time.Minute || c.Wait < 0 {
		return m, usage("--wait must be between 1s and 60s")
	}
	body, err := c.body(s)
	if err != nil {
		return m, err
	}
	m.Body = body
	if m.Method == "" {
		m.Method = "GET"
		if c.Data != nil {
			m.Method = "POST"
		}
	}
	m.Headers, err = c.headers()
	return m, err
}

func (c *sendCmd) body(s *session) ([]byte, error) {
	data := given(c.Data)
	name, isFile := strings.CutPrefix(data, "@")
	switch {
	case data == "-" || data == "@-":
		body, err := io.ReadAll(s.Stdin)
		if err != nil {
			return nil, fmt.Errorf("cannot read the body from standard input: %w", err)
		}
		return body, nil
	case isFile:
		body, err := os.ReadFile(name)
		if err != nil {
			return nil, usage("cannot read the body: %w", err)
		}
		return body, nil
	}
	return []byte(data), nil
}

func (c *sendCmd) headers() ([]client.Header, error) {
	var headers []client.Header
	for _, line := range c.Header {
		name, value, err := parseHeader(line)
		if err != nil {
			return nil, err
		}
		headers = append(headers, client.Header{Name: name, Value: value})
	}
	control := []client.Header{{Name: "Postern-Event-Id", Value: c.EventID}, {Name: "Idempotency-Key", Value: c.IdempotencyKey}}
	if c.Delay > 0 {
		control = append(control, client.Header{Name: "Postern-Delay", Value: c.Delay.String()})
	}
	for _, h := range control {
		if h.Value != "" {
			headers = append(headers, h)
		}
	}
	return headers, nil
}

// parseHeader reads 'Name: value'.
func parseHeader(line string) (name, value string, err error) {
	name, value, ok := strings.Cut(line, ":")
	name = strings.TrimSpace(name)
	if !ok || name == "" {
		return "", "", usage("a header is written 'Name: value'")
	}
	return textproto.CanonicalMIMEHeaderKey(name), strings.TrimSpace(value), nil
}

// print shows what ingest said after it took its time, or what the receiver said.
func (c *sendCmd) print(s *session, a client.Answer, took time.Duration) error {
	if c.JSON && !a.Waited {
		return s.printJSON(a.Body)
	}
	if c.JSON {
		return s.encode(map[string]any{"id": a.EventID, "state": "delivered", "status": a.Status, "body": string(a.Body)})
	}
	if a.Waited {
		fmt.Fprintf(s.err, "%s: delivered, the receiver answered %d\n", a.EventID, a.Status)
		body := a.Body
		if s.out.TTY {
			body = []byte(term.CleanText(string(body)))
		}
		_, err := s.out.Write(body)
		return err
	}
	verb := "accepted"
	if a.Accepted.Duplicate {
		verb = "a duplicate, accepted before"
	}
	_, err := fmt.Fprintf(s.out, "%s: %s for %s, %s\n", a.Accepted.ID, verb, term.Clean(a.Accepted.Endpoint), a.Accepted.State)
	if err == nil && c.Wait > 0 {
		fmt.Fprintf(s.err, "%s; see `postern events show %s`.\n", unanswered(a.Accepted, c.Wait, took), a.Accepted.ID)
	}
	return err
}

// unanswered is why there is no answer of the receiver to print, as far as ingest's own answer and the time it took tell.
func unanswered(a client.Accepted, wait, took time.Duration) string {
	switch {
	case a.Duplicate:
		return "No answer is waited for where nothing new is sent"
	case took >= client.WholeSeconds(wait):
		return fmt.Sprintf("No first attempt had ended within %s", client.WholeSeconds(wait))
	}
	return "The first attempt ended without an answer to print: it failed, or the answer is longer than 64 KiB, or Postern is stopping"
}
