package cli

import (
	"os"
	"strconv"
	"testing"
	"time"

	"github.com/rogpeppe/go-internal/testscript"
)

// TestMain lets the scripts run this very binary as postern.
func TestMain(m *testing.M) {
	time.Local = time.UTC // tables show local time
	testscript.Main(m, map[string]func(){
		"postern": func() {
			os.Exit(Main(Process{Args: os.Args[1:], Stdin: os.Stdin, Stdout: os.Stdout, Stderr: os.Stderr, Env: os.LookupEnv, now: clock()}))
		},
	})
}

// panicAfter, in the environment, is how often the time may be asked for before that panics.
const panicAfter = "POSTERN_TEST_PANIC_AFTER"

func clock() func() time.Time {
	left, err := strconv.Atoi(os.Getenv(panicAfter))
	if err != nil {
		return time.Now
	}
	return func() time.Time {
		if left--; left < 0 {
			panic(panicAfter)
		}
		return time.Now()
	}
}
