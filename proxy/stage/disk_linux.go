package stage

import (
	"bufio"
	"errors"
	"fmt"
	"io"
	"os"
	"os/exec"
	"path/filepath"
	"strconv"
	"strings"
	"syscall"

	"golang.org/x/sys/unix"
)

// holdEnv makes a test binary hold a small disk, as kind, MiB and directory, instead of running tests.
const holdEnv = "POSTERN_TEST_HOLD_DISK"

// Disk is a small file system of its own. It is mounted in a mount namespace that a child process holds, so that nothing
// stays mounted whatever happens, and outlives the programs that use it, which reach it by way of /proc.
type Disk struct {
	Path   string // the directory as everybody may name it
	Holder int    // the process whose mount namespace it is in
	Dir    string // the directory as it is called there

	cmd   *exec.Cmd
	tell  io.WriteCloser
	heard *bufio.Scanner
}

// HoldDisk makes this process the child that holds a disk, if it was started as one. A TestMain calls it first, and exits
// with the code where held is true.
func HoldDisk() (held bool, code int) {
	kind, rest, ok := strings.Cut(os.Getenv(holdEnv), " ")
	if !ok {
		return false, 0
	}
	size, dir, _ := strings.Cut(rest, " ")
	mib, _ := strconv.Atoi(size)
	return true, hold(Kind(kind), mib, dir)
}

// NewDisk mounts a file system of so many MiB at an existing directory, with the help of the test binary itself, whose
// TestMain must call HoldDisk. The error wraps ErrNoDisk where the machine allows no mounts.
func NewDisk(dir string, kind Kind, mib int) (*Disk, error) {
	cmd := exec.Command(os.Args[0])
	cmd.Env = append(os.Environ(), fmt.Sprintf("%s=%s %d %s", holdEnv, kind, mib, dir), "GORACE=atexit_sleep_ms=0")
	cmd.Stderr = os.Stderr
	cmd.SysProcAttr = &syscall.SysProcAttr{Cloneflags: unix.CLONE_NEWNS, Pdeathsig: syscall.SIGKILL}
	if os.Getuid() != 0 {
		cmd.SysProcAttr.Cloneflags |= unix.CLONE_NEWUSER
		cmd.SysProcAttr.UidMappings = []syscall.SysProcIDMap{{ContainerID: 0, HostID: os.Getuid(), Size: 1}}
		cmd.SysProcAttr.GidMappings = []syscall.SysProcIDMap{{ContainerID: 0, HostID: os.Getgid(), Size: 1}}
	}
	tell, err := cmd.StdinPipe()
	if err != nil {
		return nil, err
	}
	heard, err := cmd.StdoutPipe()
	if err != nil {
		return nil, err
	}
	err = cmd.Start()
	if errors.Is(err, syscall.EPERM) || errors.Is(err, syscall.ENOSPC) {
		return nil, fmt.Errorf("%w: %w", ErrNoDisk, err)
	}
	if err != nil {
		return nil, err
	}
	d := &Disk{Holder: cmd.Process.Pid, Dir: dir, cmd: cmd, tell: tell, heard: bufio.NewScanner(heard)}
	d.Path = filepath.Join("/proc", fmt.Sprint(d.Holder), "root", dir)
	if err := d.answer("mount"); err != nil {
		return nil, errors.Join(err, d.Close())
	}
	return d, nil
}

func (d *Disk) answer(to string) error {
	if !d.heard.Scan() || d.heard.Text() != "done" {
		return fmt.Errorf("%s a small disk: %s", to, d.heard.Text())
	}
	return nil
}

// Remount makes it read-only, or writable again. Nothing may be open for writing.
func (d *Disk) Remount(readOnly bool) error {
	mode := "rw"
	if readOnly {
		mode = "ro"
	}
	if _, err := fmt.Fprintln(d.tell, mode); err != nil {
		return err
	}
	return d.answer("remount")
}

// Fill takes all that is left of it for a file of junk, and tells the file's name.
func (d *Disk) Fill() (name string, err error) {
	name = filepath.Join(d.Path, "junk")
	f, err := os.OpenFile(name, os.O_CREATE|os.O_WRONLY|os.O_APPEND, 0o600)
	if err != nil {
		return "", err
	}
	defer f.Close()
	for _, size := range []int{1 << 20, 4096} {
		for block := make([]byte, size); err == nil; {
			_, err = f.Write(block)
		}
		if size > 4096 && errors.Is(err, syscall.ENOSPC) {
			err = f.Sync() // ext4 hands out blocks late
		}
	}
	if !errors.Is(err, syscall.ENOSPC) {
		return "", fmt.Errorf("fill the disk: %w, want ENOSPC", err)
	}
	return name, nil
}

// Close gives the disk and all that is on it back.
func (d *Disk) Close() error {
	return errors.Join(d.tell.Close(), d.cmd.Wait())
}

// hold is the child: it mounts, does what it is told, and ends with its parent.
func hold(kind Kind, mib int, dir string) int {
	say := func(err error) bool {
		if err != nil {
			fmt.Println(strings.ReplaceAll(err.Error(), "\n", " "))
			return false
		}
		fmt.Println("done")
		return true
	}
	err := unix.Mount("", "/", "", unix.MS_REC|unix.MS_PRIVATE, "")
	if err == nil {
		err = mount(kind, mib, dir)
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
		if !say(unix.Mount("", dir, "", flags, "")) {
			return 1
		}
	}
	return 0
}

func mount(kind Kind, mib int, dir string) error {
	if kind == Tmpfs {
		return unix.Mount("tmpfs", dir, "tmpfs", 0, fmt.Sprintf("size=%dm,mode=0700", mib))
	}
	image := dir + ".img"
	if err := errors.Join(os.WriteFile(image, nil, 0o600), os.Truncate(image, int64(mib)<<20)); err != nil {
		return err
	}
	defer os.Remove(image) // the loop device keeps it
	for _, args := range [][]string{{"mkfs.ext4", "-q", "-F", "-m", "0", image}, {"mount", "-o", "loop", image, dir}} {
		if out, err := exec.Command(args[0], args[1:]...).CombinedOutput(); err != nil {
			return fmt.Errorf("%s: %w: %s", args[0], err, out)
		}
	}
	return nil
}
