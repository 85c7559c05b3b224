package server

import (
	"errors"
	"fmt"
	"io/fs"
	"net"
	"os"
	"path/filepath"
	"syscall"
	"testing"
)

// socketDir is short: the path of a socket must be.
func socketDir(t *testing.T) string {
	t.Helper()
	dir, err := os.MkdirTemp("", "pst")
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() { os.RemoveAll(dir) })
	return dir
}

func mustListen(t *testing.T, path string, mode fs.FileMode) net.Listener {
	t.Helper()
	ln, err := Listen("unix", path, mode)
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() { ln.Close() })
	return ln
}

// TestSocketMode: whatever the umask is, and it is left as it was.
func TestSocketMode(t *testing.T) {
	for _, umask := range []int{0, 0o022, 0o177} {
		for _, mode := range []fs.FileMode{0o600, 0o660, 0o666} {
			path := filepath.Join(socketDir(t), "s")
			before := syscall.Umask(umask)
			ln := mustListen(t, path, mode)
			if after := syscall.Umask(before); after != umask {
				t.Errorf("the umask was %o and is %o", umask, after)
			}
			if info, err := os.Lstat(path); err != nil || info.Mode() != mode|fs.ModeSocket {
				t.Errorf("umask %o, mode %o: %v, %v", umask, mode, info.Mode(), err)
			}
			c, err := net.Dial("unix", path)
			if err != nil {
				t.Fatal(err)
			}
			c.Close()
			ln.Close()
			if _, err := os.Lstat(path); !errors.Is(err, fs.ErrNotExist) {
				t.Errorf("the file is left behind: %v", err)
			}
		}
	}
}

func TestWhatIsAtThePath(t *testing.T) {
	dir := socketDir(t)
	live := mustListen(t, filepath.Join(dir, "live"), 0o600)
	dead, err := net.Listen("unix", filepath.Join(dir, "dead"))
	if err != nil {
		t.Fatal(err)
	}
	dead.(*net.UnixListener).SetUnlinkOnClose(false)
	dead.Close()
	datagram, err := net.ListenPacket("unixgram", filepath.Join(dir, "datagram"))
	if err != nil {
		t.Fatal(err)
	}
	defer datagram.Close()
	if err := os.WriteFile(filepath.Join(dir, "file"), []byte("precious"), 0o600); err != nil {
		t.Fatal(err)
	}
	if err := os.Symlink("dead", filepath.Join(dir, "link")); err != nil {
		t.Fatal(err)
	}
	if err := os.Mkdir(filepath.Join(dir, "folder"), 0o700); err != nil {
		t.Fatal(err)
	}
	for _, c := range []struct {
		name string
		want error
	}{
		{"live", ErrInUse}, {"file", ErrNotSocket}, {"link", ErrNotSocket}, {"folder", ErrNotSocket}, {"datagram", ErrInUse},
		{"none/at/all", fs.ErrNotExist}, {"dead", nil}, {"new", nil},
	} {
		path := filepath.Join(dir, c.name)
		before, _ := os.Lstat(path)
		ln, err := Listen("unix", path, 0o600)
		if !errors.Is(err, c.want) || (err == nil) != (c.want == nil) {
			t.Errorf("%s: %v, want %v", c.name, err, c.want)
		}
		if err == nil {
			ln.Close()
			continue
		}
		if after, _ := os.Lstat(path); before != nil && (after == nil || !os.SameFile(before, after)) {
			t.Errorf("%s was removed", c.name)
		}
	}
	if c, err := net.Dial("unix", live.Addr().String()); err != nil {
		t.Errorf("the live one: %v", err)
	} else {
		c.Close()
	}
}

// TestClosingLeavesAnothersSocket: a file that somebody else has put there meanwhile is not ours.
func TestClosingLeavesAnothersSocket(t *testing.T) {
	path := filepath.Join(socketDir(t), "s")
	ln := mustListen(t, path, 0o600)
	if err := os.Remove(path); err != nil {
		t.Fatal(err)
	}
	other := mustListen(t, path, 0o600)
	ln.Close()
	c, err := net.Dial("unix", path)
	if err != nil {
		t.Fatal(err)
	}
	c.Close()
	other.Close()
}

func TestPortInUse(t *testing.T) {
	ln, err := Listen("tcp", "127.0.0.1:0", 0)
	if err != nil {
		t.Fatal(err)
	}
	defer ln.Close()
	if _, err := Listen("tcp", ln.Addr().String(), 0); !errors.Is(err, ErrInUse) {
		t.Errorf("%v", err)
	}
}

// 0.0.0.0 is IPv4 and nothing else, as it is to nginx and Postgres.
func TestIPv4Alone(t *testing.T) {
	ln, err := Listen("tcp", "0.0.0.0:0", 0)
	if err != nil {
		t.Fatal(err)
	}
	defer ln.Close()
	if network := ln.Addr().(*net.TCPAddr).IP; network.To4() == nil {
		t.Errorf("listening on %v", ln.Addr())
	}
	port := ln.Addr().(*net.TCPAddr).Port
	if c, err := net.Dial("tcp4", fmt.Sprintf("127.0.0.1:%d", port)); err != nil {
		t.Error(err)
	} else {
		c.Close()
	}
	if c, err := net.Dial("tcp6", fmt.Sprintf("[::1]:%d", port)); err == nil {
		c.Close()
		t.Error("it answers on IPv6 as well")
	}
}
