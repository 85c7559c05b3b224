package torture

import (
	"flag"
	"fmt"
	"os"
	"os/exec"
	"path/filepath"
	"testing"
	"time"

	"postern/proxy/stage"
	"postern/sync/pgtest"
)

// The flags of a long run. go test without them runs the short forms.
var (
	length = flag.Duration("for", 90*time.Second, "how `long` the rounds go on")
	seed   = flag.Uint64("seed", 0, "plan the rounds from this `number` (0: a new one, which is printed)")
	only   = flag.String("only", "", "only the faults whose name matches this `regexp`")
	result = flag.String("report", "", "write the table to this `file` as JSON")
	heavy  = flag.Bool("heavy", false, "the limits of load in full size")
	soak   = flag.Duration("soak", 15*time.Second, "how `long` the soak takes")
	rate   = flag.Int("rate", 200, "events a second of the soak")
	keep   = flag.String("keep", "", "the `directory` for what a failed run leaves (default: a temporary one)")
)

// binary is the postern that TestMain built.
var binary string

func TestMain(m *testing.M) {
	if held, code := stage.HoldDisk(); held {
		os.Exit(code)
	}
	flag.Parse()
	dir, err := os.MkdirTemp("", "postern-torture-")
	if err != nil {
		fmt.Fprintln(os.Stderr, err)
		os.Exit(1)
	}
	defer os.RemoveAll(dir)
	binary = filepath.Join(dir, "postern")
	build := exec.Command("go", "build", "-trimpath", "-o", binary, "postern")
	build.Env = append(os.Environ(), "CGO_ENABLED=0")
	if out, err := build.CombinedOutput(); err != nil {
		fmt.Fprintf(os.Stderr, "building postern: %v\n%s", err, out)
		os.Exit(1)
	}
	pgtest.Main(m)
}
