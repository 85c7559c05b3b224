package main

import (
	"encoding/json"
	"errors"
	"io"
	"os/exec"
	"slices"
	"strings"
	"testing"
)

// mayImport is the table of who may import whom inside the module. A package that is not in it may be imported by its
// own children and parent's tests only; adding a row, or a name to a row, is a decision about the architecture.
// A trailing /... stands for the package and everything below it.
var mayImport = map[string][]string{
	"postern":                  {"postern/proxy/cli"},
	"postern/configs":          {"postern/proxy/target", "postern/proxy/signing", "postern/spool/keyfile"},
	"postern/limiter":          {"postern/limiter/breaker", "postern/limiter/bucket"},
	"postern/limiter/breaker":  {},
	"postern/limiter/bucket":   {},
	"postern/limiter/quantile": {},

	"postern/spool":                   {"postern/spool/internal/..."},
	"postern/spool/keyfile":           {},
	"postern/spool/internal/disk":     {},
	"postern/spool/internal/keyring":  {},
	"postern/spool/internal/layout":   {},
	"postern/spool/internal/pagefile": {},
	"postern/spool/spooltest":         {"postern/spool"},

	// sync itself is an empty folder, so that the word means the standard library in our code. pgtest is for tests and benchmarks only.
	"postern/sync/pgstore": {},
	"postern/sync/pgtest":  {"postern/sync/pgtest/freeport"},
	// For tests alone, here because the servers of pgtest and the programs of proxy share one range of ports.
	"postern/sync/pgtest/freeport": {},
	"postern/sync/pgtest/intime":   {}, // for tests alone, of sync and of proxy
	"postern/sync/syncer":          {"postern/spool", "postern/sync/pgstore"},

	// The leaves: pure, or as good as, and open to everybody under proxy.
	"postern/proxy/target":   {},
	"postern/proxy/redact":   {},
	"postern/proxy/retry":    {},
	"postern/proxy/problem":  {},
	"postern/proxy/guard":    {"postern/proxy/problem"},
	"postern/proxy/findings": {},
	"postern/proxy/server":   {"postern/proxy/problem", "postern/proxy/redact"},
	"postern/proxy/signing":  {},
	"postern/proxy/trend":    {},
	"postern/proxy/ui":       {},

	// The parts: none imports another; only app joins them.
	"postern/proxy/ingest":    {"postern/spool", "postern/proxy/target", "postern/proxy/problem", "postern/proxy/guard", "postern/proxy/redact"},
	"postern/proxy/scheduler": {"postern/spool", "postern/limiter/...", "postern/proxy/retry"},
	"postern/proxy/delivery":  {"postern/spool", "postern/proxy/target", "postern/proxy/retry", "postern/proxy/redact"},
	"postern/proxy/egress":    {"postern/proxy/target", "postern/proxy/retry", "postern/proxy/redact"},
	"postern/proxy/admin":     {"postern/spool", "postern/proxy/problem", "postern/proxy/guard", "postern/proxy/findings", "postern/proxy/target", "postern/proxy/redact", "postern/proxy/trend"},
	"postern/proxy/telemetry": {},
	"postern/proxy/client":    {},

	// What people ask about all instances together reads the central store; only the command line shows it.
	"postern/proxy/fleet":     {"postern/sync/pgstore", "postern/proxy/findings", "postern/proxy/retry", "postern/proxy/trend"},
	"postern/proxy/fleet/web": {"postern/proxy/fleet", "postern/proxy/guard", "postern/proxy/problem", "postern/proxy/redact", "postern/proxy/ui"},

	"postern/proxy/app": {
		"postern/configs", "postern/spool", "postern/limiter/...", "postern/proxy/ingest", "postern/proxy/scheduler",
		"postern/proxy/delivery", "postern/proxy/egress", "postern/proxy/admin", "postern/proxy/telemetry",
		"postern/sync/syncer", "postern/sync/pgstore",
		"postern/proxy/target", "postern/proxy/retry", "postern/proxy/guard", "postern/proxy/problem", "postern/proxy/signing", "postern/proxy/redact", "postern/proxy/server", "postern/proxy/ui",
	},
	"postern/proxy/cli": {
		"postern/configs", "postern/spool", "postern/proxy/app", "postern/proxy/client", "postern/proxy/cli/...",
		"postern/proxy/findings", "postern/proxy/demo", "postern/proxy/signing",
		"postern/proxy/fleet/...", "postern/proxy/retry", "postern/proxy/redact", "postern/sync/pgstore", "postern/proxy/guard", "postern/proxy/server",
	},
	"postern/proxy/cli/term":  {},
	"postern/proxy/cli/guide": {},
	"postern/proxy/demo":      {"postern/proxy/app", "postern/proxy/client", "postern/configs", "postern/proxy/cli/term"},
	"postern/proxy/e2e":       {},
	"postern/proxy/bench":     {"postern/proxy/bench/chart", "postern/sync/pgtest"},
	// Draws what bench measured.
	"postern/proxy/bench/chart": {},
	// For tests of pages only.
	"postern/proxy/e2e/browser": {},
	"postern/proxy/torture":     {},
	"postern/proxy/stage":       {"postern/sync/pgtest/freeport"}, // for the tests of the whole

	"postern/examples/receiver-go":       {"postern/proxy/signing"},
	"postern/examples/clients/go/before": {},
	"postern/examples/clients/go/after":  {},
}

// oneDoor names the packages that alone may import a technology.
var oneDoor = map[string][]string{
	"go.etcd.io/bbolt":                      {"postern/spool"},
	"go.etcd.io/bbolt/errors":               {"postern/spool"},
	"github.com/VictoriaMetrics/metrics":    {"postern/proxy/telemetry"},
	"github.com/hashicorp/go-retryablehttp": {"postern/proxy/delivery"},
	"github.com/alecthomas/kong":            {"postern/proxy/cli"},
	"github.com/goccy/go-yaml":              {"postern/configs"},
	"golang.org/x/time/rate":                {"postern/limiter/bucket"},
	"github.com/jackc/pgx/v5":               {"postern/sync/pgstore", "postern/sync/pgtest"},
	"github.com/chromedp/chromedp":          {"postern/proxy/e2e/browser"},
	"github.com/jackc/pgx/v5/pgconn":        {"postern/sync/pgstore"},
}

type listed struct {
	ImportPath string
	Imports    []string
}

func packages(t *testing.T) []listed {
	t.Helper()
	out, err := exec.Command("go", "list", "-json=ImportPath,Imports", "./...").Output()
	if err != nil {
		t.Fatal(err)
	}
	var all []listed
	for dec := json.NewDecoder(strings.NewReader(string(out))); ; {
		var p listed
		if err := dec.Decode(&p); errors.Is(err, io.EOF) {
			return all
		} else if err != nil {
			t.Fatal(err)
		}
		all = append(all, p)
	}
}

func TestImports(t *testing.T) {
	for _, p := range packages(t) {
		allowed, known := mayImport[p.ImportPath]
		if !known {
			t.Errorf("%s is not in the table mayImport: add a row for it", p.ImportPath)
		}
		for _, imported := range p.Imports {
			if strings.HasPrefix(imported, "postern") && !slices.ContainsFunc(allowed, matches(imported)) {
				t.Errorf("%s may not import %s", p.ImportPath, imported)
			}
			if doors, ok := oneDoor[imported]; ok && !slices.Contains(doors, p.ImportPath) {
				t.Errorf("%s imports %s, which only %v may", p.ImportPath, imported, doors)
			}
		}
	}
}

func matches(imported string) func(string) bool {
	return func(row string) bool {
		below, tree := strings.CutSuffix(row, "/...")
		return row == imported || tree && (imported == below || strings.HasPrefix(imported, below+"/"))
	}
}
