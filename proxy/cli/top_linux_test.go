package cli

import (
	"bytes"
	"fmt"
	"net/http"
	"os"
	"os/exec"
	"path/filepath"
	"strings"
	"sync"
	"syscall"
	"testing"
	"time"

	"golang.org/x/sys/unix"
)

// console is a terminal of its own, and what was shown on it.
type console struct {
	t          *testing.T
	master     *os.File
	slave      *os.File
	before     unix.Termios
	mu         sync.Mutex // guards shown
	shown      bytes.Buffer
	unreadable sync.WaitGroup
}

func newConsole(t *testing.T, columns, lines uint16) *console {
	t.Helper()
	master, err := os.OpenFile("/dev/ptmx", os.O_RDWR|syscall.O_NOCTTY, 0)
	if err != nil {
		t.Fatal(err)
	}
	fd := int(master.Fd())
	n, err := unix.IoctlGetInt(fd, unix.TIOCGPTN)
	if err != nil {
		t.Fatal(err)
	}
	if err := unix.IoctlSetPointerInt(fd, unix.TIOCSPTLCK, 0); err != nil {
		t.Fatal(err)
	}
	slave, err := os.OpenFile(fmt.Sprint("/dev/pts/", n), os.O_RDWR|syscall.O_NOCTTY, 0)
	if err != nil {
		t.Fatal(err)
	}
	c := &console{t: t, master: master, slave: slave}
	c.resize(columns, lines)
	c.before = c.mode()
	c.unreadable.Go(func() {
		var buf [4096]byte
		for {
			n, err := master.Read(buf[:])
			c.mu.Lock()
			c.shown.Write(buf[:n])
			c.mu.Unlock()
			if err != nil {
				return
			}
		}
	})
	t.Cleanup(func() {
		slave.Close()
		c.unreadable.Wait() // a terminal that nobody has open any more ends
		master.Close()
	})
	return c
}

func (c *console) resize(columns, lines uint16) {
	c.t.Helper()
	if err := unix.IoctlSetWinsize(int(c.slave.Fd()), unix.TIOCSWINSZ, &unix.Winsize{Col: columns, Row: lines}); err != nil {
		c.t.Fatal(err)
	}
}

func (c *console) mode() unix.Termios {
	c.t.Helper()
	mode, err := unix.IoctlGetTermios(int(c.slave.Fd()), unix.TCGETS)
	if err != nil {
		c.t.Fatal(err)
	}
	return *mode
}

func (c *console) text() string {
	c.mu.Lock()
	defer c.mu.Unlock()
	return c.shown.String()
}

// see waits until something is shown after what was there before.
func (c *console) see(from int, what string) int {
	c.t.Helper()
	deadline := time.Now().Add(2 * time.Minute)
	tick := time.NewTicker(10 * time.Millisecond)
	defer tick.Stop()
	for ; ; <-tick.C {
		text := c.text()
		if at := strings.Index(text[from:], what); at >= 0 {
			return from + at + len(what)
		}
		if time.Now().After(deadline) {
			c.t.Fatalf("no %q on the terminal: %q", what, text[from:])
		}
	}
}

// watched starts top on the console, and shows it on another one where that is given.
func (c *console) watched(admin string, on *console, env ...string) *exec.Cmd {
	c.t.Helper()
	cmd := command(c.t, "top", "--admin", admin, "--interval", "100ms")
	cmd.Env = append(os.Environ(), append([]string{"TERM=xterm", "COLUMNS="}, env...)...)
	cmd.Stdin, cmd.Stdout, cmd.Stderr = c.slave, c.slave, c.slave
	if on != nil {
		cmd.Stdout = on.slave
	}
	if err := cmd.Start(); err != nil {
		c.t.Fatal(err)
	}
	c.t.Cleanup(func() { cmd.Process.Kill() })
	return cmd
}

// leave is what gives the terminal's own text and its cursor back.
const leave = "\x1b[?25h\x1b[?1049l"

// gone waits for the end, and looks whether the terminal is as it was.
func (c *console) gone(cmd *exec.Cmd, how string, code int) {
	c.t.Helper()
	if err := cmd.Wait(); cmd.ProcessState.ExitCode() != code {
		c.t.Errorf("%s: %v: %q", how, err, c.text())
	}
	if c.mode() != c.before {
		c.t.Errorf("%s: the terminal is not as it was", how)
	}
}

// toWatch starts a Postern to be watched, and returns where its admin API is.
func toWatch(t *testing.T) (admin string) {
	t.Helper()
	socket := filepath.Join(t.TempDir(), "s")
	admin = "unix:" + socket + "a"
	run := command(t, "run", "--dev", "--listen", "unix:"+socket, "--admin-listen", admin)
	if err := run.Start(); err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() {
		run.Process.Signal(syscall.SIGTERM)
		run.Wait()
	})
	waitForSocket(t, socket+"a")
	return admin
}

// TestTopOnATerminal watches a running Postern, is held and let go, follows the window, and leaves nothing behind however
// it is ended.
func TestTopOnATerminal(t *testing.T) {
	admin := toWatch(t)
	for how, end := range map[string]func(c *console, cmd *exec.Cmd){
		"q":       func(c *console, _ *exec.Cmd) { c.master.WriteString("q") },
		"Ctrl-C":  func(c *console, _ *exec.Cmd) { c.master.WriteString("\x03") },
		"SIGTERM": func(_ *console, cmd *exec.Cmd) { cmd.Process.Signal(syscall.SIGTERM) },
		"SIGINT":  func(_ *console, cmd *exec.Cmd) { cmd.Process.Signal(syscall.SIGINT) },
		"SIGHUP":  func(_ *console, cmd *exec.Cmd) { cmd.Process.Signal(syscall.SIGHUP) },
		"SIGQUIT": func(_ *console, cmd *exec.Cmd) { cmd.Process.Signal(syscall.SIGQUIT) },
	} {
		c := newConsole(t, 80, 24)
		cmd := c.watched(admin, nil, "NO_COLOR=1")
		at := c.see(0, "q quit")
		if c.mode() == c.before {
			t.Errorf("%s: keys are not taken as they are pressed", how)
		}
		if how == "q" {
			c.master.WriteString("p")
			at = c.see(at, "held; p go on")
			c.master.WriteString("p")
			at = c.see(at, "q quit   p hold")
			c.resize(30, 6)
			at = c.see(at, "q quit   p hold")
			c.see(at, "q quit   p hold")
		}
		if strings.Contains(c.text(), "\x1b[3") {
			t.Errorf("%s: colours although NO_COLOR is set: %q", how, c.text())
		}
		end(c, cmd)
		c.gone(cmd, how, exitDone)
		c.see(0, leave)
	}
}

// TestTopPanicsOnATerminal: what went wrong is told on the terminal as it was before.
func TestTopPanicsOnATerminal(t *testing.T) {
	c := newConsole(t, 80, 24)
	cmd := c.watched(toWatch(t), nil, panicAfter+"=20")
	c.see(0, "q quit")
	c.gone(cmd, "a panic", 2)
	c.see(c.see(0, leave), "panic: "+panicAfter)
}

// TestTopLosesItsTerminal: where nothing can be drawn any more, the keyboard's terminal is given back all the same.
func TestTopLosesItsTerminal(t *testing.T) {
	keyboard, picture := newConsole(t, 80, 24), newConsole(t, 80, 24)
	cmd := keyboard.watched(toWatch(t), picture)
	picture.see(0, "q quit")
	if keyboard.mode() == keyboard.before {
		t.Error("keys are not taken as they are pressed")
	}
	picture.master.Close() // the reader lets go of it with the next picture
	keyboard.gone(cmd, "an error", exitFailed)
	keyboard.see(0, "input/output error")
}

// waitForSocket waits until Postern answers there.
func waitForSocket(t *testing.T, path string) {
	t.Helper()
	deadline := time.Now().Add(2 * time.Minute)
	tick := time.NewTicker(10 * time.Millisecond)
	defer tick.Stop()
	for ; time.Now().Before(deadline); <-tick.C {
		if command(t, "healthcheck", "--admin", "unix:"+path).Run() == nil {
			return
		}
	}
	t.Fatal(http.StatusText(http.StatusServiceUnavailable))
}
