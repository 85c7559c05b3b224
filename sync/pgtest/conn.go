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
