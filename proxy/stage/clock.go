package stage

import (
	"encoding/json"
	"fmt"
	"os"
	"os/exec"
	"path/filepath"
	"strings"
	"time"
)

// ClockEnv names the file from which a build with a clock reads, at its start and at each SIGUSR1, by how many seconds
// its wall clock differs from the machine's. It removes the file when the difference is in force.
const ClockEnv = "POSTERN_TEST_CLOCK"

// BuildWithClock builds a postern in dir whose wall clock can be set, as the system's is by a person or by NTP, while the
// monotonic clock runs on. All of it is the real program but for two lines of package time, and a file of package main
// that sets what those lines add. dir must last as long as the program does.
func BuildWithClock(dir string) (program string, err error) {
	root, err := exec.Command("go", "env", "GOROOT").Output()
	if err != nil {
		return "", err
	}
	module, err := exec.Command("go", "list", "-m", "-f", "{{.Dir}}").Output()
	if err != nil {
		return "", err
	}
	original := filepath.Join(strings.TrimSpace(string(root)), "src", "time", "time.go")
	text, err := os.ReadFile(original)
	if err != nil {
		return "", err
	}
	const begin, reads = "func Now() Time {\n", "sec, nsec, mono := runtimeNow()\n"
	before, after, found := strings.Cut(string(text), begin+"\t"+reads)
	if !found {
		return "", fmt.Errorf("time.Now in %s is not as this test knows it: look at BuildWithClock", original)
	}
	changed := before + begin + "\t" + reads + "\tsec += Step.Load()\n" + after + "\n// Step is what is added to the wall clock, in seconds.\nvar Step atomic.Int64\n"
	changed = strings.Replace(changed, "import (\n", "import (\n\t\"sync/atomic\"\n", 1)
	overlay, _ := json.Marshal(map[string]map[string]string{"Replace": {
		original: filepath.Join(dir, "time.go"), filepath.Join(strings.TrimSpace(string(module)), "setclock.go"): filepath.Join(dir, "setclock.go"),
	}})
	for name, content := range map[string]string{"time.go": changed, "setclock.go": setClock, "overlay.json": string(overlay)} {
		if err := os.WriteFile(filepath.Join(dir, name), []byte(content), 0o600); err != nil {
			return "", err
		}
	}
	program = filepath.Join(dir, "postern-with-clock")
	out, err := exec.Command("go", "build", "-trimpath", "-overlay", filepath.Join(dir, "overlay.json"), "-o", program, "postern").CombinedOutput()
	if err != nil {
		return "", fmt.Errorf("%w: %s", err, out)
	}
	return program, nil
}

// SetClock writes the step, in whole seconds, for the program that reads this file.
func SetClock(file string, step time.Duration) error {
	if err := os.WriteFile(file+".new", fmt.Append(nil, int64(step.Seconds())), 0o600); err != nil {
		return err
	}
	return os.Rename(file+".new", file)
}

// ClockIsSet tells whether the program has read the step.
func ClockIsSet(file string) bool {
	_, err := os.Stat(file)
	return os.IsNotExist(err)
}

const setClock = `package main

import (
	"fmt"
	"os"
	"os/signal"
	"syscall"
	"time"
)

func init() {
	file := os.Getenv("` + ClockEnv + `")
	set := func() {
		var step int64
		if b, err := os.ReadFile(file); err == nil {
			fmt.Sscan(string(b), &step)
			time.Step.Store(step)
			os.Remove(file)
		}
	}
	set()
	told := make(chan os.Signal, 1)
	signal.Notify(told, syscall.SIGUSR1)
	go func() {
		for range told {
			set()
		}
	}()
}
`
