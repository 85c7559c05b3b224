package pgtest

import (
	"fmt"
	"os"
	"os/exec"
	"path/filepath"
	"syscall"
	"testing"
)

// Disk is a file system that another process has mounted where nobody else sees it.
type Disk struct {
	// Holder is the process whose mount namespace it is in.
	Holder int
	// Dir is the directory as it is called there. It is given to the server's user.
	Dir string
}

// StartOn is Start with the data folder on a disk of its own, for root alone: to become the server's user in somebody
// else's namespace takes a root from outside of it.
func StartOn(t testing.TB, disk Disk, options ...string) *Server {
	t.Helper()
	cred, err := unprivileged()
	if err == nil {
		err = os.Chown(filepath.Join("/proc", fmt.Sprint(disk.Holder), "root", disk.Dir), int(cred.Uid), int(cred.Gid))
	}
	if err != nil {
		t.Fatal(err)
	}
	return started(t)(startOn(&disk, options))
}

// command runs a program in the disk's namespace as the server's user.
func (d *Disk) command(cred *syscall.Credential, program []string) *exec.Cmd {
	args := []string{
		fmt.Sprintf("--mount=/proc/%d/ns/mnt", d.Holder), "--wdns=/", "--",
		"setpriv", fmt.Sprint("--reuid=", cred.Uid), fmt.Sprint("--regid=", cred.Gid), "--clear-groups", "--pdeathsig=QUIT", "--",
	}
	return exec.Command("nsenter", append(args, program...)...)
}
