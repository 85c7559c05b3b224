package main

import (
	"bytes"
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"net/http"
	"sync"
	"time"

	"postern/sync/pgtest"
)

// The queue in Postgres that many applications have: a table, an INSERT with its own commit for each event, and workers
// that poll it with FOR UPDATE SKIP LOCKED. It is written as one would write it to be fast without being clever: a pool
// of connections, prepared statements, an index on what waits, batches that are claimed and finished in one
// transaction, and kept connections to the receiver. It keeps what Postern keeps: nothing is acknowledged before it is
// committed, and what a crash cuts is sent again.

// queueTable makes the table anew.
const queueTable = `DROP TABLE IF EXISTS queue;
CREATE TABLE queue (
	id bigint GENERATED ALWAYS AS IDENTITY PRIMARY KEY,
	event_id text NOT NULL UNIQUE DEFAULT 'evt_' || gen_random_uuid(),
	url text NOT NULL,
	payload bytea NOT NULL,
	status text NOT NULL DEFAULT 'pending',
	attempt_count integer NOT NULL DEFAULT 0,
	created_at timestamptz NOT NULL DEFAULT now(),
	next_attempt_at timestamptz NOT NULL DEFAULT now(),
	delivered_at timestamptz,
	last_status_code integer
);
CREATE INDEX ON queue (next_attempt_at) WHERE status = 'pending'`

const (
	enqueue = `INSERT INTO queue (url, payload) VALUES ($1, $2) RETURNING event_id`
	claim   = `SELECT id, event_id, url, payload FROM queue WHERE status = 'pending' AND next_attempt_at <= now()
		ORDER BY next_attempt_at LIMIT $1 FOR UPDATE SKIP LOCKED`
	finish = `UPDATE queue SET status = 'delivered', delivered_at = now(), attempt_count = attempt_count + 1, last_status_code = $2 WHERE id = $1`
	later  = `UPDATE queue SET attempt_count = attempt_count + 1, last_status_code = $2,
		next_attempt_at = now() + interval '30 seconds' * power(2, attempt_count) WHERE id = $1`
)

// queueSpec is what the queue needs to know.
type queueSpec struct {
	DSN, Schema, Receiver string
	Writers, Workers      int // connections that insert; workers, with a connection each
	Batch                 int // events that a worker claims at once
	Poll                  time.Duration
}

// pgQueue is one queue at work.
type pgQueue struct {
	queueSpec
	writers chan *pgtest.Conn
	client  *http.Client
}

// roleQueue serves the queue's door and runs its workers until stdin ends.
func roleQueue(parameters string, stdin io.Reader, stdout io.Writer) (err error) {
	q := &pgQueue{}
	if err := json.Unmarshal([]byte(parameters), &q.queueSpec); err != nil {
		return err
	}
	ctx, cancel := context.WithCancel(context.Background())
	conns, err := q.open(ctx)
	defer func() {
		for _, c := range conns {
			c.Close()
		}
	}()
	if err != nil {
		cancel()
		return err
	}
	var workers sync.WaitGroup
	failed := make(chan error, q.Workers)
	for _, c := range conns[q.Writers:] {
		workers.Go(func() { failed <- q.work(ctx, c) })
	}
	err = serveUntilEOF(&http.Server{Handler: q}, stdin, stdout)
	cancel()
	workers.Wait()
	close(failed)
	for e := range failed {
		err = errors.Join(err, e)
	}
	return err
}

// open makes the table and opens all connections, those of the writers first.
func (q *pgQueue) open(ctx context.Context) (conns []*pgtest.Conn, err error) {
	q.client = &http.Client{Timeout: 15 * time.Second, Transport: &http.Transport{MaxIdleConnsPerHost: q.Workers, DisableCompression: true}}
	q.writers = make(chan *pgtest.Conn, q.Writers)
	for i := range q.Writers + q.Workers {
		c, err := pgtest.Dial(ctx, q.DSN, q.Schema)
		if err != nil {
			return conns, err
		}
		conns = append(conns, c)
		if i < q.Writers {
			q.writers <- c
		}
	}
	return conns, conns[0].Exec(ctx, queueTable)
}

// ServeHTTP keeps one event and answers 202 once it is committed.
func (q *pgQueue) ServeHTTP(w http.ResponseWriter, r *http.Request) {
	body, err := io.ReadAll(r.Body)
	if err != nil {
		return // the client is gone
	}
	c := <-q.writers
	var id string
	err = c.Each(r.Context(), enqueue, []any{"http://" + q.Receiver + r.URL.Path, body}, []any{&id}, func() error { return nil })
	q.writers <- c
	if err != nil {
		w.WriteHeader(http.StatusServiceUnavailable)
		return
	}
	w.WriteHeader(http.StatusAccepted)
	fmt.Fprintf(w, `{"id":%q}`, id)
}

// queued is one claimed event.
type queued struct {
	id           int64
	eventID, url string
	payload      []byte
}

// work claims, delivers and finishes batch after batch, and polls where there is nothing to do. A batch that has begun
// when ctx ends is finished.
func (q *pgQueue) work(ctx context.Context, c *pgtest.Conn) error {
	for ctx.Err() == nil {
		n, err := q.batch(context.WithoutCancel(ctx), c)
		if err != nil {
			return err
		}
		if n == 0 {
			_ = sleep(ctx, q.Poll)
		}
	}
	return nil
}

// batch is one transaction: the rows stay locked while they are delivered, so that a crash gives them back.
func (q *pgQueue) batch(ctx context.Context, c *pgtest.Conn) (n int, err error) {
	if err := c.Exec(ctx, "BEGIN"); err != nil {
		return 0, err
	}
	var events []queued
	var e queued
	err = c.Each(ctx, claim, []any{q.Batch}, []any{&e.id, &e.eventID, &e.url, &e.payload}, func() error {
		events = append(events, e)
		e.payload = nil
		return nil
	})
	for i := 0; err == nil && i < len(events); i++ {
		sql, status := later, q.send(ctx, events[i])
		if status/100 == 2 {
			sql = finish
		}
		err = c.Each(ctx, sql, []any{events[i].id, status}, nil, nil)
	}
	if err != nil {
		return 0, errors.Join(err, c.Exec(ctx, "ROLLBACK"))
	}
	return len(events), c.Exec(ctx, "COMMIT")
}

// send delivers one event; 0 stands for an attempt without an answer.
func (q *pgQueue) send(ctx context.Context, e queued) (status int) {
	req, err := http.NewRequestWithContext(ctx, http.MethodPost, e.url, bytes.NewReader(e.payload))
	if err != nil {
		return 0
	}
	req.Header.Set("Content-Type", "application/json")
	req.Header.Set("Postern-Event-Id", e.eventID)
	resp, err := q.client.Do(req)
	if err != nil {
		return 0
	}
	defer resp.Body.Close()
	_, _ = io.Copy(io.Discard, resp.Body) // so that the connection can be used again
	return resp.StatusCode
}
