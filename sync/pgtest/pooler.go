package pgtest

import (
	"errors"
	"fmt"
	"net"
	"os"
	"os/exec"
	"path/filepath"
	"strconv"
	"testing"
	"time"

	"postern/sync/pgtest/freeport"
)

// FindPooler returns PgBouncer's path, empty where there is none.
func FindPooler() string {
	for _, name := range []string{"pgbouncer", "/usr/sbin/pgbouncer"} {
		if path, err := exec.LookPath(name); err == nil {
			return path
		}
	}
	return ""
}

// poolerConfig has two server connections for everybody, so that transactions of one client meet different ones.
const poolerConfig = `[databases]
* = host=127.0.0.1 port=%d
[pgbouncer]
listen_addr = 127.0.0.1
listen_port = %d
unix_socket_dir =
auth_type = scram-sha-256
auth_file = %s
pool_mode = transaction
default_pool_size = 2
max_client_conn = 500
`

// Pooler starts a PgBouncer in transaction mode in front of the server, which ends with the test, and returns the
// connection string that goes through it.
func (s *Server) Pooler(t testing.TB) string {
	t.Helper()
	dir, err := os.MkdirTemp(s.dir, "pooler")
	if err != nil {
		t.Fatal(err)
	}
	port, err := freeport.Next()
	if err != nil {
		t.Fatal(err)
	}
	users, config := filepath.Join(dir, "users"), filepath.Join(dir, "ini")
	err = errors.Join(s.own(dir), s.put(users, fmt.Appendf(nil, "%q %q\n", "postgres", password)),
		s.put(config, fmt.Appendf(nil, poolerConfig, s.port, port, users)))
	if err != nil {
		t.Fatal(err)
	}
	cmd := exec.Command(FindPooler(), "-q", config)
	cmd.Dir, cmd.SysProcAttr = dir, childAttr(s.cred)
	exited, err := spawn(cmd)
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() {
		_ = cmd.Process.Kill()
		<-exited
	})
	awaitPort(t, port, exited)
	return fmt.Sprintf("postgres://postgres:%s@127.0.0.1:%d/postgres?sslmode=disable", password, port)
}

func awaitPort(t testing.TB, port int, exited <-chan struct{}) {
	t.Helper()
	deadline := time.After(startLimit)
	for {
		conn, err := net.Dial("tcp", net.JoinHostPort("127.0.0.1", strconv.Itoa(port)))
		if err == nil {
			conn.Close()
			return
		}
		select {
		case <-exited:
			t.Fatal("the pooler has ended")
		case <-deadline:
			t.Fatalf("the pooler does not answer: %v", err)
		case <-time.After(10 * time.Millisecond):
		}
	}
}
