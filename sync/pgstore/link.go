package pgstore

import (
	"context"
	"errors"
	"sync/atomic"

	"github.com/jackc/pgx/v5"
	"github.com/jackc/pgx/v5/pgconn"
)

// link is the one connection of a store, made when it is needed and given up at the first sign of trouble. A pool would
// do more than is needed and wait for servers that do not answer, when it closes and before it connects again.
type link struct {
	cfg    *pgx.ConnConfig
	busy   chan struct{} // full while the connection is in use
	conn   *pgx.Conn     // belongs to whoever filled busy
	closed atomic.Bool
}

var errClosed = errors.New("the store is closed")

func newLink(cfg *pgx.ConnConfig) *link { return &link{cfg: cfg, busy: make(chan struct{}, 1)} }

// tx runs fn in a transaction that begins with the given statements. A connection that died while nobody looked is
// replaced; anything later is the caller's to try again.
func (l *link) tx(ctx context.Context, begin string, fn func(pgx.Tx) error) error {
	select {
	case l.busy <- struct{}{}:
	case <-ctx.Done():
		return ctx.Err()
	}
	defer func() { <-l.busy }()
	reused := l.conn != nil
	began, err := l.attempt(ctx, begin, fn)
	if err != nil && reused && !began && l.conn == nil && ctx.Err() == nil {
		_, err = l.attempt(ctx, begin, fn)
	}
	return err
}

// attempt tells whether fn was called. After an error that is not one statement's the connection is given up.
func (l *link) attempt(ctx context.Context, begin string, fn func(pgx.Tx) error) (began bool, err error) {
	if l.closed.Load() {
		return false, errClosed
	}
	if l.conn == nil {
		if l.conn, err = pgx.ConnectConfig(ctx, l.cfg); err != nil {
			l.conn = nil
			return false, err
		}
	}
	err = pgx.BeginTxFunc(ctx, l.conn, pgx.TxOptions{BeginQuery: begin}, func(tx pgx.Tx) error {
		began = true
		return fn(tx)
	})
	var pg *pgconn.PgError
	if l.conn.IsClosed() || l.closed.Load() || err != nil && !errors.As(err, &pg) {
		l.drop()
	}
	return began, err
}

// drop closes the connection without waiting for an answer.
func (l *link) drop() {
	if l.conn != nil {
		_ = l.conn.Close(context.Background())
		l.conn = nil
	}
}

// close closes the connection now, or leaves that to whoever uses it.
func (l *link) close() {
	l.closed.Store(true)
	select {
	case l.busy <- struct{}{}:
		l.drop()
		<-l.busy
	default:
	}
}
