package torture

import (
	"context"
	"errors"
	"fmt"
	"math/rand/v2"
	"os"
	"os/exec"
	"testing"
	"time"

	"github.com/jackc/pgx/v5"
	"github.com/jackc/pgx/v5/pgconn"

	"postern/proxy/stage"
	"postern/sync/pgtest"
)

var postgresFaults = []fault{
	{"Postgres connections ended", 2, postgres, func(w *world, rnd *rand.Rand) error {
		for range 3 {
			between(rnd, 50*time.Millisecond, 300*time.Millisecond)
			if err := w.sql("SELECT pg_terminate_backend(pid) FROM pg_stat_activity WHERE pid <> pg_backend_pid() AND backend_type = 'client backend'"); err != nil {
				return err
			}
		}
		return nil
	}},
	{"Postgres stopped and started", 2, postgres, func(w *world, rnd *rand.Rand) error {
		between(rnd, 50*time.Millisecond, 300*time.Millisecond)
		if err := w.server.Down(); err != nil {
			return err
		}
		between(rnd, 300*time.Millisecond, 1500*time.Millisecond)
		return w.server.Up()
	}},
	{"Postgres frozen", 2, postgres, func(w *world, rnd *rand.Rand) error {
		between(rnd, 50*time.Millisecond, 300*time.Millisecond)
		if err := w.server.Freeze(); err != nil {
			return err
		}
		between(rnd, 500*time.Millisecond, 3*time.Second)
		return w.server.Thaw()
	}},
	{"Postgres full", 2, postgres, postgresFull},
}

// postgresFull fills the disk of Postgres; where it has none of its own a trigger says what a full one says.
func postgresFull(w *world, rnd *rand.Rand) error {
	between(rnd, 50*time.Millisecond, 300*time.Millisecond)
	if w.serverDisk == nil {
		if err := w.sql(fmt.Sprintf(noRoom, w.db.Schema)); err != nil {
			return err
		}
		between(rnd, 500*time.Millisecond, 2*time.Second)
		return w.sql(fmt.Sprintf("DROP FUNCTION %s.no_room() CASCADE", w.db.Schema))
	}
	junk, err := w.serverDisk.Fill()
	if err != nil {
		return err
	}
	between(rnd, 500*time.Millisecond, 3*time.Second)
	if err := os.Remove(junk); err != nil {
		return err
	}
	if !w.server.Running() { // where its log has no room the server ends
		return w.server.Up()
	}
	return nil
}

const noRoom = `CREATE FUNCTION %[1]s.no_room() RETURNS trigger LANGUAGE plpgsql AS $$ BEGIN RAISE EXCEPTION 'could not extend file: No space left on device' USING ERRCODE = '53100'; END $$;
	CREATE TRIGGER no_room BEFORE INSERT OR UPDATE ON %[1]s.webhook_queue EXECUTE FUNCTION %[1]s.no_room();
	CREATE TRIGGER no_room BEFORE INSERT OR UPDATE ON %[1]s.endpoint_latency EXECUTE FUNCTION %[1]s.no_room();`

// startPostgres starts a server, on a disk of its own where that is possible.
func startPostgres(t *testing.T, dir string) (*pgtest.Server, *stage.Disk) {
	t.Helper()
	_, enter := exec.LookPath("nsenter")
	_, become := exec.LookPath("setpriv")
	if os.Getuid() != 0 || enter != nil || become != nil {
		return pgtest.Start(t), nil
	}
	disk, err := stage.NewDisk(dir, stage.Tmpfs, 768)
	if err != nil {
		return pgtest.Start(t), nil
	}
	t.Cleanup(func() { disk.Close() })
	return pgtest.StartOn(t, pgtest.Disk{Holder: disk.Holder, Dir: disk.Dir}), disk
}

func (w *world) connect() (*pgx.Conn, func(), error) {
	ctx, cancel := context.WithTimeout(context.Background(), 20*time.Second)
	conn, err := pgx.Connect(ctx, w.db.DSN)
	if err != nil {
		cancel()
		return nil, nil, err
	}
	return conn, func() { conn.Close(ctx); cancel() }, nil
}

func (w *world) sql(text string) error {
	conn, done, err := w.connect()
	if err != nil {
		return err
	}
	defer done()
	_, err = conn.Exec(context.Background(), text)
	return err
}

// judgePostgres waits until Postgres has caught up, and finds each delivered event in it, once.
func (w *world) judgePostgres(delivered int) error {
	query := fmt.Sprintf("SELECT count(*), count(DISTINCT event_id) FROM %s.webhook_queue WHERE status = 'delivered'", w.db.Schema)
	var rows, events int
	err := poll(30*time.Second, "Postgres to catch up", func() (bool, error) {
		conn, done, err := w.connect()
		if err != nil {
			return false, err
		}
		defer done()
		err = conn.QueryRow(context.Background(), query).Scan(&rows, &events)
		if missing := new(pgconn.PgError); errors.As(err, &missing) && missing.Code == "42P01" {
			return false, nil // not yet
		}
		return rows >= delivered, err
	})
	if err == nil && (rows != delivered || events != delivered) {
		err = fmt.Errorf("too many rows")
	}
	if err != nil {
		return fmt.Errorf("%w: %d rows of %d events, %d were delivered", err, rows, events, delivered)
	}
	return nil
}
