package cli

import (
	"os"
	"testing"
	"time"

	"github.com/rogpeppe/go-internal/testscript"
)

// TestMain lets the scripts run this very binary as postern.
func TestMain(m *testing.M) {
	time.Local = time.UTC // tables show local time
	testscript.Main(m, map[string]func(){
		"postern": func() {
			os.Exit(Main(Process{Args: os.Args[1:], Stdin: os.Stdin, Stdout: os.Stdout, Stderr: os.Stderr, Env: os.LookupEnv}))
		},
	})
}
