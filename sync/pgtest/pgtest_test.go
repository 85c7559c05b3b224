package pgtest_test

import (
	"context"
	"net"
	"strconv"
	"testing"
	"time"

	"postern/sync/pgtest"
)

func TestMain(m *testing.M) { pgtest.Main(m) }

func TestEachTestHasItsOwnSchema(t *testing.T) {
	a, b := pgtest.New(t), pgtest.New(t)
	if a.Schema == b.Schema {
		t.Fatalf("both are called %s", a.Schema)
	}
	a.Exec("CREATE SCHEMA " + a.Schema + "; CREATE TABLE x (n int); INSERT INTO x VALUES (7), (null)")
	if got := a.Rows("SELECT n, current_schema FROM x ORDER BY n"); len(got) != 2 || got[0][0] != "7" || got[1][0] != "null" || got[0][1] != a.Schema {
		t.Errorf("rows %q", got)
	}
}

func TestSchemasAreDropped(t *testing.T) {
	var name string
	t.Run("inner", func(t *testing.T) {
		db := pgtest.New(t)
		name = db.Schema
		db.Exec("CREATE SCHEMA " + name)
	})
	if n := pgtest.New(t).Value("SELECT count(*) FROM pg_namespace WHERE nspname = '" + name + "'"); n != "0" {
		t.Errorf("%s is still there", name)
	}
}

func TestServerStopsFreezesAndReturns(t *testing.T) {
	s := pgtest.Start(t)
	db := pgtest.On(t, s.DSN())
	db.Exec("CREATE SCHEMA " + db.Schema + "; CREATE TABLE x (n int); INSERT INTO x VALUES (1)")
	if err := s.Down(); err != nil {
		t.Fatal(err)
	}
	address := net.JoinHostPort("127.0.0.1", strconv.Itoa(s.Port()))
	if conn, err := net.DialTimeout("tcp", address, time.Second); err == nil {
		conn.Close()
		t.Error("the port still answers")
	}
	if err := s.Up(); err != nil {
		t.Fatal(err)
	}
	if n := db.Value("SELECT n FROM x"); n != "1" {
		t.Errorf("n = %s after the restart", n)
	}
	if err := s.Freeze(); err != nil {
		t.Fatal(err)
	}
	answered := make(chan string, 1)
	go func() { answered <- dial(address) }()
	select {
	case text := <-answered:
		t.Errorf("a frozen server said %q", text)
	case <-time.After(100 * time.Millisecond):
	}
	if err := s.Thaw(); err != nil {
		t.Fatal(err)
	}
	if text := <-answered; text != "N" {
		t.Errorf("after the thaw it said %q", text)
	}
}

// dial asks for TLS, which is the shortest question that Postgres answers: N for no.
func dial(address string) string {
	ctx, cancel := context.WithTimeout(context.Background(), time.Minute)
	defer cancel()
	conn, err := new(net.Dialer).DialContext(ctx, "tcp", address)
	if err != nil {
		return err.Error()
	}
	defer conn.Close()
	_ = conn.SetDeadline(time.Now().Add(2 * time.Minute))
	if _, err := conn.Write([]byte{0, 0, 0, 8, 4, 210, 22, 47}); err != nil {
		return err.Error()
	}
	answer := make([]byte, 1)
	if _, err := conn.Read(answer); err != nil {
		return err.Error()
	}
	return string(answer)
}
