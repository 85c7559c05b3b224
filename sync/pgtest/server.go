package pgtest

import (
	"bytes"
	"context"
	"errors"
	"fmt"
	"os"
	"os/exec"
	"path/filepath"
	"runtime"
	"strconv"
	"strings"
	"syscall"
	"testing"
	"time"

	"github.com/jackc/pgx/v5"

	"postern/sync/pgtest/freeport"
)

// password is every server's. They answer on loopback only.
const password = "pgtest"

// Server is a Postgres that was started for tests.
type Server struct {
	bin, dir string
	port     int
	options  []string
	cred     *syscall.Credential
	disk     *Disk // nil: beside everything else
	cmd      *exec.Cmd
	exited   chan struct{}
	log      bytes.Buffer
}

// startLimit bounds how long a server may take until it answers. Many test binaries may start at once.
const startLimit = 60 * time.Second

// Start starts a server of the test's own, which ends with the test. options are settings such as "fsync=on".
func Start(t testing.TB, options ...string) *Server {
	t.Helper()
	return started(t)(start(options))
}

// started ends a server with the test.
func started(t testing.TB) func(*Server, error) *Server {
	return func(s *Server, err error) *Server {
		t.Helper()
		if err != nil {
			t.Fatal(err)
		}
		t.Cleanup(func() {
			if err := s.remove(); err != nil {
				t.Errorf("remove the server: %v", err)
			}
		})
		return s
	}
}

func start(options []string) (*Server, error) { return startOn(nil, options) }

func startOn(disk *Disk, options []string) (*Server, error) {
	bin, err := find()
	if err != nil {
		return nil, err
	}
	dir, err := os.MkdirTemp("", "pgtest")
	if err != nil {
		return nil, err
	}
	s := &Server{bin: bin, dir: dir, options: options, disk: disk}
	if err = s.create(); err == nil {
		err = s.Up()
	}
	if err != nil {
		return nil, errors.Join(err, s.remove())
	}
	return s, nil
}

// create makes the data folder. Postgres refuses to run as root, so then everything belongs to another user.
func (s *Server) create() (err error) {
	if os.Getuid() == 0 {
		if s.cred, err = unprivileged(); err != nil {
			return err
		}
	}
	secret := filepath.Join(s.dir, "password")
	if err := errors.Join(s.own(s.dir), s.put(secret, []byte(password))); err != nil {
		return err
	}
	if s.port, err = freeport.Next(); err != nil {
		return err
	}
	cmd := s.command("initdb", "-D", s.data(), "-U", "postgres", "-A", "scram-sha-256", "--pwfile="+secret, "-E", "UTF8", "--locale=C", "-N")
	if out, err := cmd.CombinedOutput(); err != nil {
		return fmt.Errorf("initdb: %w: %s", err, out)
	}
	return nil
}

// own gives a file to the server's user.
func (s *Server) own(path string) error {
	if s.cred == nil {
		return nil
	}
	return os.Chown(path, int(s.cred.Uid), int(s.cred.Gid))
}

// put writes a file that the server's user alone may read.
func (s *Server) put(path string, data []byte) error {
	if err := os.WriteFile(path, data, 0o600); err != nil {
		return err
	}
	return s.own(path)
}

func (s *Server) data() string {
	if s.disk != nil {
		return filepath.Join(s.disk.Dir, "data")
	}
	return filepath.Join(s.dir, "data")
}

func (s *Server) command(program string, args ...string) *exec.Cmd {
	cmd := exec.Command(filepath.Join(s.bin, program), args...)
	cred := s.cred
	if s.disk != nil {
		cmd, cred = s.disk.command(s.cred, cmd.Args), nil
	}
	cmd.Dir = s.dir
	cmd.Env = append(os.Environ(), "LC_ALL=C", "TZ=UTC")
	cmd.SysProcAttr = childAttr(cred)
	return cmd
}

// Up starts the server again after Down, on the same port with the same data, and returns when it answers.
func (s *Server) Up() (err error) {
	args := []string{
		"-D", s.data(), "-p", strconv.Itoa(s.port), "-c", "listen_addresses=127.0.0.1", "-c", "unix_socket_directories=",
		"-c", "fsync=off", "-c", "max_connections=200",
	}
	for _, option := range s.options {
		args = append(args, "-c", option)
	}
	s.cmd = s.command("postgres", args...)
	s.log.Reset()
	s.cmd.Stdout, s.cmd.Stderr = &s.log, &s.log
	if s.exited, err = spawn(s.cmd); err != nil {
		return fmt.Errorf("start postgres: %w", err)
	}
	return s.await()
}

// spawn starts a child; exited is closed when it has ended.
func spawn(cmd *exec.Cmd) (exited chan struct{}, err error) {
	started := make(chan error)
	exited = make(chan struct{})
	go func() {
		// The child is told of the death of this thread, so the thread must live as long as the child.
		runtime.LockOSThread()
		defer runtime.UnlockOSThread()
		defer close(exited)
		err := cmd.Start()
		started <- err
		if err == nil {
			_ = cmd.Wait()
		}
	}()
	return exited, <-started
}

func (s *Server) await() error {
	ctx, cancel := context.WithTimeout(context.Background(), startLimit)
	defer cancel()
	for {
		conn, err := pgx.Connect(ctx, s.DSN())
		if err == nil {
			return conn.Close(ctx)
		}
		select {
		case <-s.exited:
			return fmt.Errorf("postgres ended: %s", s.log.String())
		case <-ctx.Done():
			return fmt.Errorf("postgres does not answer: %w", err)
		case <-time.After(20 * time.Millisecond):
		}
	}
}

// DSN is the superuser's connection string.
func (s *Server) DSN() string {
	return fmt.Sprintf("postgres://postgres:%s@127.0.0.1:%d/postgres?sslmode=disable", password, s.port)
}

// Running tells whether the server's main process has not ended, by itself or by Down.
func (s *Server) Running() bool {
	select {
	case <-s.exited:
		return false
	default:
		return true
	}
}

// Port is the server's TCP port on 127.0.0.1.
func (s *Server) Port() int { return s.port }

// Down stops the server at once, as a crash or a restart would, and cuts all connections.
func (s *Server) Down() error {
	if s.cmd == nil || s.cmd.Process == nil || !s.Running() {
		return nil
	}
	if err := s.cmd.Process.Signal(syscall.SIGQUIT); err != nil {
		return err
	}
	select {
	case <-s.exited:
		return nil
	case <-time.After(10 * time.Second):
		_ = s.cmd.Process.Kill()
		<-s.exited
		return errors.New("postgres had to be killed")
	}
}

func (s *Server) remove() error {
	return errors.Join(s.Down(), os.RemoveAll(s.dir))
}

// Freeze stops every process of the server where it is: connections stay open and nothing is answered any more. Thaw
// lets them go on.
func (s *Server) Freeze() error { return s.signalAll(syscall.SIGSTOP) }

// Thaw ends Freeze.
func (s *Server) Thaw() error { return s.signalAll(syscall.SIGCONT) }

func (s *Server) signalAll(sig syscall.Signal) error {
	pid := s.cmd.Process.Pid
	if err := syscall.Kill(pid, sig); err != nil {
		return err
	}
	for _, child := range children(pid) {
		if err := syscall.Kill(child, sig); err != nil && !errors.Is(err, syscall.ESRCH) {
			return err
		}
	}
	return nil
}

// children finds the processes that the server has forked, through /proc.
func children(parent int) (pids []int) {
	stats, _ := filepath.Glob("/proc/[0-9]*/stat")
	for _, path := range stats {
		text, err := os.ReadFile(path)
		if err != nil {
			continue
		}
		// pid (comm) state ppid …: comm may hold blanks and brackets.
		_, rest, _ := strings.Cut(string(text[bytes.LastIndexByte(text, ')')+1:]), " ")
		fields := strings.Fields(rest)
		if len(fields) > 1 && fields[1] == strconv.Itoa(parent) {
			if pid, err := strconv.Atoi(filepath.Base(filepath.Dir(path))); err == nil {
				pids = append(pids, pid)
			}
		}
	}
	return pids
}

// Dump is everything that is in a schema, as pg_dump writes it.
func (s *Server) Dump(t testing.TB, schema string) string {
	t.Helper()
	cmd := s.command("pg_dump", "--schema="+schema, "--inserts", s.DSN())
	out, err := cmd.CombinedOutput()
	if err != nil {
		t.Fatalf("pg_dump: %v: %s", err, out)
	}
	return string(out)
}
