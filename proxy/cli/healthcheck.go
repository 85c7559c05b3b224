package cli

import (
	"context"
	"encoding/json"
	"fmt"
	"net/http"
	"strings"
	"time"

	"postern/proxy/cli/term"
)

type healthcheckCmd struct {
	adminFlags
	Live    bool          `help:"Ask whether the process is alive (/healthz) instead of ready (/readyz)."`
	Timeout time.Duration `default:"5s" help:"Give up after this time."`
}

// Help is shown under the command's usage.
func (healthcheckCmd) Help() string {
	return "Exit code 0: yes. 1: no, or nobody answers. 2: wrong usage, or a configuration was named that does not tell where to ask. It serves exec probes and images without a shell.\n\nExample:\n\n    postern healthcheck\n    postern healthcheck --live --admin unix:/run/postern-admin.sock"
}

// Run asks one probe.
func (c *healthcheckCmd) Run(s *session) error {
	if c.Timeout <= 0 {
		return usage("--timeout must be more than 0s")
	}
	admin, err := c.open(s)
	if err != nil {
		return err
	}
	defer admin.Close()
	ctx, cancel := context.WithTimeout(context.Background(), c.Timeout)
	defer cancel()
	path, yes := "/readyz", "ready"
	if c.Live {
		path, yes = "/healthz", "alive"
	}
	status, text, err := admin.Probe(ctx, path)
	if err != nil {
		return err
	}
	if status != http.StatusOK {
		return fmt.Errorf("not %s (status %d)%s", yes, status, reasons(text))
	}
	_, err = fmt.Fprintln(s.out, yes)
	return err
}

// reasons reads why Postern is not ready out of its answer.
func reasons(answer []byte) string {
	var why struct{ Reasons []string }
	if json.Unmarshal(answer, &why) != nil || len(why.Reasons) == 0 {
		return ""
	}
	return ": " + term.Clean(strings.Join(why.Reasons, "; "))
}
