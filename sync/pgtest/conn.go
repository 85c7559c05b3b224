package pgtest

import (
	"context"

	"github.com/jackc/pgx/v5"
)

// Conn is a connection with a schema in front of its search path, for statements as a person types them.
type Conn struct{ conn *pgx.Conn }

// Dial opens one.
func Dial(ctx context.Context, dsn, schema string) (*Conn, error) {
	conn, err := pgx.Connect(ctx, dsn)
	if err != nil {
		return nil, err
	}
	c := &Conn{conn}
	if err := c.Exec(ctx, "SET search_path = "+schema+"; SET timezone = 'UTC'"); err != nil {
		c.Close()
		return nil, err
	}
	return c, nil
}

// Close closes it, also where contexts have ended.
func (c *Conn) Close() { _ = c.conn.Close(context.Background()) }

// Exec runs statements.
func (c *Conn) Exec(ctx context.Context, sql string) error {
	_, err := c.conn.Exec(ctx, sql)
	return err
}

// Rows returns a query's rows, every value as Postgres writes it as text; null is the text "null".
func (c *Conn) Rows(ctx context.Context, sql string) ([][]string, error) {
	result, err := c.conn.Query(ctx, sql, pgx.QueryExecModeSimpleProtocol)
	if err != nil {
		return nil, err
	}
	return pgx.CollectRows(result, func(r pgx.CollectableRow) ([]string, error) {
		var row []string
		for _, v := range r.RawValues() {
			if v == nil {
				row = append(row, "null")
				continue
			}
			row = append(row, string(v))
		}
		return row, nil
	})
}

// Each runs one statement, prepared at its first use and with arguments, in a transaction where one is open. It scans
// every row into the pointers of into and calls row, which may be nil where the statement returns none.
func (c *Conn) Each(ctx context.Context, sql string, args []any, into []any, row func() error) error {
	result, err := c.conn.Query(ctx, sql, args...)
	if err != nil {
		return err
	}
	_, err = pgx.ForEachRow(result, into, row)
	return err
}
