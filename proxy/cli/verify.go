package cli

import (
	"bufio"
	"os"
	"strconv"
	"time"

	"postern/proxy/cli/term"
	"postern/proxy/signing"
)

type verifyCmd struct {
	JSON         bool          `name:"json" help:"Print the checks as JSON."`
	Scheme       string        `required:"" enum:"standard,stripe,hub,template" placeholder:"SCHEME" help:"How it was signed: standard, stripe, hub or template."`
	SecretFile   string        `required:"" placeholder:"FILE" help:"File with the secret; while one is being changed several, one per line (each has a file of its own in the configuration)."`
	Raw          string        `placeholder:"FILE" xor:"body" help:"The whole request as it was captured, request line and headers and body; - reads standard input."`
	Body         string        `placeholder:"FILE" xor:"body" help:"The exact body; without this and --raw, standard input is."`
	Header       []string      `short:"H" sep:"none" placeholder:"NAME: VALUE" help:"Header of the request, where there is no --raw; may be repeated."`
	SignHeader   string        `placeholder:"NAME" help:"Header with the signature (sign.header), for template, and for stripe where it is not Stripe-Signature."`
	SignTemplate string        `placeholder:"TEMPLATE" help:"How its value is made (sign.template), for template."`
	Tolerance    time.Duration `default:"5m" placeholder:"DURATION" help:"How far the timestamp may be off, either way; 5m unless given."`
	Now          string        `placeholder:"TIME" help:"The time to check at, as RFC 3339 or Unix seconds, for a request of yesterday; now unless given."`
}

// Help is shown under the command's usage.
func (verifyCmd) Help() string {
	return `Checks the signature of a request that was received, and says which check failed. Exit code 0: it is valid. 1: it is not. 2: wrong usage. Secrets and bodies are never printed.

Example:

    postern verify --scheme standard --secret-file secret --raw request.http
    postern verify --scheme standard --secret-file secret -H 'webhook-id: evt_1' -H 'webhook-timestamp: 1700000000' -H 'webhook-signature: v1,…' --now 1700000000 < body
    postern verify --scheme template --sign-header X-Sig --sign-template '{hex({body})}' --secret-file secret --raw -`
}

// Run checks one request.
func (c *verifyCmd) Run(s *session) error {
	verifier, err := c.verifier(s)
	if err != nil {
		return err
	}
	request, err := c.request(s)
	if err != nil {
		return err
	}
	if request.unread > 0 {
		s.hint("not looked at: %s behind the body, which Content-Length, or the last chunk, ends before", term.Count(int64(request.unread), "byte"))
	}
	checks, err := inspect(verifier, request)
	if err != nil {
		return &exitError{code: exitUsage, err: err}
	}
	if c.JSON {
		err = s.encode(verdict{Valid: checks.valid(), Scheme: c.Scheme, Checks: checks})
	} else {
		err = s.facts(checks.facts())
	}
	if err == nil && !checks.valid() {
		return errFailed
	}
	return err
}

// verifier is what the flags say about the sender.
func (c *verifyCmd) verifier(s *session) (*signing.Verifier, error) {
	v := &signing.Verifier{
		Scheme: signing.Scheme(c.Scheme), Header: c.SignHeader, Template: c.SignTemplate, Tolerance: c.Tolerance, Now: s.now,
	}
	if c.Tolerance <= 0 {
		return nil, usage("--tolerance must be more than nothing, such as 5m")
	}
	if c.Now != "" {
		at, err := parseMoment(c.Now)
		if err != nil {
			return nil, err
		}
		v.Now = func() time.Time { return at }
	}
	var err error
	v.Secrets, err = readSecrets(c.SecretFile, v.Scheme)
	return v, err
}

func parseMoment(text string) (time.Time, error) {
	if seconds, err := strconv.ParseInt(text, 10, 64); err == nil {
		return time.Unix(seconds, 0), nil
	}
	at, err := time.Parse(time.RFC3339, text)
	if err != nil {
		return at, usage("--now is a time such as 2026-03-04T12:00:00Z, or Unix seconds")
	}
	return at, nil
}

// readSecrets reads one secret per line. Its errors name lines, and never what is in them.
func readSecrets(name string, scheme signing.Scheme) ([][]byte, error) {
	file, err := os.Open(name)
	if err != nil {
		return nil, usage("cannot read the secrets: %w", err)
	}
	defer file.Close()
	var secrets [][]byte
	lines := bufio.NewScanner(file)
	for n := 1; lines.Scan(); n++ {
		if lines.Text() == "" {
			continue
		}
		secret, err := signing.ParseSecret(scheme, lines.Text())
		if err != nil {
			return nil, usage("%s, line %d: %w", name, n, err)
		}
		secrets = append(secrets, secret)
	}
	if err := lines.Err(); err != nil {
		return nil, usage("cannot read the secrets: %w", err)
	}
	if len(secrets) == 0 {
		return nil, usage("%s has no secret in it; write one per line", name)
	}
	return secrets, nil
}
