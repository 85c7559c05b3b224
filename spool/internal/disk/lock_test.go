package disk

import (
	"bufio"
	"errors"
	"os"
	"os/exec"
	"path/filepath"
	"strconv"
	"strings"
	"testing"
)

// holdEnv makes the test binary a process that locks the file it names, says so and waits for the end of its input.
const holdEnv = "POSTERN_TEST_HOLD_LOCK"

func TestMain(m *testing.M) {
	if path := os.Getenv(holdEnv); path != "" {
		os.Exit(holdLock(path))
	}
	os.Exit(m.Run())
}

func holdLock(path string) int {
	if _, err := Lock(path); err != nil {
		os.Stdout.WriteString(err.Error() + "\n")
		return 1
	}
	os.Stdout.WriteString("locked\n")
	_, _ = bufio.NewReader(os.Stdin).ReadByte()
	return 0
}

// startHolder starts a process that holds the lock until it is killed.
func startHolder(t *testing.T, path string) *exec.Cmd {
	t.Helper()
	cmd := exec.Command(os.Args[0])
	cmd.Env = append(os.Environ(), holdEnv+"="+path)
	if _, err := cmd.StdinPipe(); err != nil {
		t.Fatal(err)
	}
	out, err := cmd.StdoutPipe()
	if err != nil {
		t.Fatal(err)
	}
	if err := cmd.Start(); err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() { _ = cmd.Process.Kill(); _ = cmd.Wait() })
	if line, _ := bufio.NewReader(out).ReadString('\n'); line != "locked\n" {
		t.Fatalf("the holder said %q", line)
	}
	return cmd
}

func TestLockKeepsOutAnotherProcess(t *testing.T) {
	path := filepath.Join(t.TempDir(), "lock")
	holder := startHolder(t, path)

	_, err := Lock(path)
	locked, ok := errors.AsType[*LockedError](err)
	if !ok {
		t.Fatalf("Lock = %v, want a LockedError", err)
	}
	if locked.PID != holder.Process.Pid || locked.Path != path {
		t.Errorf("LockedError = %+v, want PID %d of %s", locked, holder.Process.Pid, path)
	}
	if !strings.Contains(err.Error(), "PID "+strconv.Itoa(holder.Process.Pid)) {
		t.Errorf("the text does not name the holder: %s", err)
	}

	// A kill is how a crash looks: the lock must be free at once, without anybody cleaning up.
	if err := holder.Process.Kill(); err != nil {
		t.Fatal(err)
	}
	_ = holder.Wait()
	lock, err := Lock(path)
	if err != nil {
		t.Fatalf("Lock after the holder died: %v", err)
	}
	if err := lock.Unlock(); err != nil {
		t.Fatal(err)
	}
}

func TestLockWithinOneProcess(t *testing.T) {
	path := filepath.Join(t.TempDir(), "lock")
	first, err := Lock(path)
	if err != nil {
		t.Fatal(err)
	}
	_, err = Lock(path)
	if locked, ok := errors.AsType[*LockedError](err); !ok || locked.PID != os.Getpid() {
		t.Fatalf("second Lock = %v, want it refused with this process's PID", err)
	}
	if err := first.Unlock(); err != nil {
		t.Fatal(err)
	}
	if err := first.Unlock(); err != nil {
		t.Fatalf("second Unlock: %v", err)
	}
	second, err := Lock(path)
	if err != nil {
		t.Fatalf("Lock after Unlock: %v", err)
	}
	if err := second.Unlock(); err != nil {
		t.Fatal(err)
	}
	if err := (*FileLock)(nil).Unlock(); err != nil {
		t.Fatalf("Unlock of no lock: %v", err)
	}
}

func TestLockFile(t *testing.T) {
	for name, before := range map[string]string{
		"new":                 "",
		"of an earlier run":   "4194304             \n",
		"longer than a note":  strings.Repeat("x", 100),
		"without a final end": "12",
	} {
		t.Run(name, func(t *testing.T) {
			path := filepath.Join(t.TempDir(), "lock")
			if before != "" {
				if err := os.WriteFile(path, []byte(before), 0o600); err != nil {
					t.Fatal(err)
				}
			}
			lock, err := Lock(path)
			if err != nil {
				t.Fatal(err)
			}
			defer lock.Unlock()
			content, err := os.ReadFile(path)
			if err != nil {
				t.Fatal(err)
			}
			if len(content) != pidWidth+1 || strings.TrimSpace(string(content)) != strconv.Itoa(os.Getpid()) {
				t.Errorf("the file holds %q", content)
			}
			if info, _ := os.Stat(path); info.Mode().Perm() != 0o600 {
				t.Errorf("mode %v, want 0600", info.Mode().Perm())
			}
		})
	}
}

func TestLockedErrorOfUnknownHolder(t *testing.T) {
	for name, content := range map[string]string{"empty": "", "no number": "who\n", "negative": "-5\n"} {
		t.Run(name, func(t *testing.T) {
			path := filepath.Join(t.TempDir(), "lock")
			lock, err := Lock(path)
			if err != nil {
				t.Fatal(err)
			}
			defer lock.Unlock()
			if err := os.WriteFile(path, []byte(content), 0o600); err != nil {
				t.Fatal(err)
			}
			_, err = Lock(path)
			if locked, ok := errors.AsType[*LockedError](err); !ok || locked.PID != 0 {
				t.Fatalf("Lock = %v, want it refused with PID 0", err)
			}
			if !strings.Contains(err.Error(), "another process") || strings.Contains(err.Error(), "PID") {
				t.Errorf("text: %s", err)
			}
		})
	}
}

func TestLockNeedsItsDirectory(t *testing.T) {
	if _, err := Lock(filepath.Join(t.TempDir(), "absent", "lock")); !errors.Is(err, os.ErrNotExist) {
		t.Fatalf("Lock = %v, want ErrNotExist", err)
	}
}

func TestLockOfAReplacedFile(t *testing.T) {
	path := filepath.Join(t.TempDir(), "lock")
	f, err := os.Create(path)
	if err != nil {
		t.Fatal(err)
	}
	defer f.Close()
	if !isStill(f, path) {
		t.Error("an untouched file counts as replaced")
	}
	if err := os.Remove(path); err != nil {
		t.Fatal(err)
	}
	if isStill(f, path) {
		t.Error("a removed file counts as still there")
	}
	if err := os.WriteFile(path, nil, 0o600); err != nil {
		t.Fatal(err)
	}
	if isStill(f, path) {
		t.Error("a replaced file counts as still there")
	}
}
