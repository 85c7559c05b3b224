package e2e

import (
	"bufio"
	"errors"
	"fmt"
	"io"
	"os"
	"os/exec"
	"path/filepath"
	"strings"
	"syscall"
	"testing"

	"golang.org/x/sys/unix"
)

// holdDiskEnv makes the test binary hold a small disk instead of running tests: SIZE:DIRECTORY.
const holdDiskEnv = "POSTERN_E2E_DISK"

// smallDisk is a tmpfs of its own for one test. It is mounted in a mount namespace that a child process holds, so that
// nothing stays mounted whatever happens, and outlives the Posterns that use it, which reach it by way of /proc.
type smallDisk struct {
	t     *testing.T
	pid   int    // of the child
	dir   string // the directory as it is called in the child's namespace
	path  string // as everybody may name it
	tell  io.WriteCloser
	heard *bufio.Scanner
}

// newSmallDisk mounts one of 4 MiB, or returns nil and says what was not tested where the machine allows no namespaces. The full
// spool is tested everywhere, by TestMaxBytes.
func newSmallDisk(t *testing.T) *smallDisk { return newDisk(t, "4m") }

// newDisk is newSmallDisk of another size.
func newDisk(t *testing.T, size string) *smallDisk {
	t.Helper()
	dir := t.TempDir()
	cmd := exec.Command(os.Args[0])
	cmd.Env = append(os.Environ(), holdDiskEnv+"="+size+":"+dir, "GORACE=atexit_sleep_ms=0")
	cmd.Stderr = os.Stderr
	cmd.SysProcAttr = &syscall.SysProcAttr{Cloneflags: unix.CLONE_NEWNS, Pdeathsig: syscall.SIGKILL}
	if os.Getuid() != 0 {
		cmd.SysProcAttr.Cloneflags |= unix.CLONE_NEWUSER
		cmd.SysProcAttr.UidMappings = []syscall.SysProcIDMap{{ContainerID: 0, HostID: os.Getuid(), Size: 1}}
		cmd.SysProcAttr.GidMappings = []syscall.SysProcIDMap{{ContainerID: 0, HostID: os.Getgid(), Size: 1}}
	}
	tell, _ := cmd.StdinPipe()
	heard, _ := cmd.StdoutPipe()
	err := cmd.Start()
	if errors.Is(err, syscall.EPERM) || errors.Is(err, syscall.ENOSPC) {
		t.Logf("NOT TESTED on a real full disk, because this machine allows no mount namespace: %v", err)
		return nil
	}
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() { tell.Close(); cmd.Wait() })
	d := &smallDisk{t: t, pid: cmd.Process.Pid, dir: dir, tell: tell, heard: bufio.NewScanner(heard)}
	d.path = filepath.Join("/proc", fmt.Sprint(d.pid), "root", dir)
	d.answer("mount")
	return d
}

func (d *smallDisk) answer(to string) {
	d.t.Helper()
	if !d.heard.Scan() || d.heard.Text() != "done" {
		d.t.Fatalf("%s the small disk: %s", to, d.heard.Text())
	}
}

// remount makes it read-only, or writable again. Nothing may be open for writing.
func (d *smallDisk) remount(mode string) {
	d.t.Helper()
	fmt.Fprintln(d.tell, mode)
	d.answer("remount")
}

// fill takes all that is left of it for a file of junk, and tells the file's name.
func (d *smallDisk) fill() string {
	d.t.Helper()
	name := filepath.Join(d.path, "junk")
	f, err := os.OpenFile(name, os.O_CREATE|os.O_WRONLY|os.O_APPEND, 0o600)
	if err != nil {
		d.t.Fatal(err)
	}
	defer f.Close()
	block := make([]byte, 4096)
	for err == nil {
		_, err = f.Write(block)
	}
	if !errors.Is(err, syscall.ENOSPC) {
		d.t.Fatalf("filling the disk: %v, want ENOSPC", err)
	}
	return name
}

// holdDisk is the child: it mounts, does what it is told, and ends with its parent.
func holdDisk(what string) int {
	size, dir, _ := strings.Cut(what, ":")
	options := "size=" + size + ",mode=0700"
	say := func(err error) bool {
		if err != nil {
			fmt.Println(err)
			return false
		}
		fmt.Println("done")
		return true
	}
	err := unix.Mount("", "/", "", unix.MS_REC|unix.MS_PRIVATE, "")
	if err == nil {
		err = unix.Mount("tmpfs", dir, "tmpfs", 0, options)
	}
	if !say(err) {
		return 1
	}
	orders := bufio.NewScanner(os.Stdin)
	for orders.Scan() {
		flags := uintptr(unix.MS_REMOUNT)
		if strings.TrimSpace(orders.Text()) == "ro" {
			flags |= unix.MS_RDONLY
		}
		if !say(unix.Mount("tmpfs", dir, "tmpfs", flags, options)) {
			return 1
		}
	}
	return 0
}
