package pgstore

import (
	"fmt"
	"strings"
)

// MigrationDownSQL is what MigrateDown(n) runs on a schema of version from, as a script for psql: one transaction.
func MigrationDownSQL(schema string, from, n int) (string, error) {
	c := Config{DSN: "-", Schema: schema}.withDefaults()
	if err := c.validate(); err != nil {
		return "", err
	}
	if from > len(migrations) {
		return "", ErrNewerSchema
	}
	var b strings.Builder
	fmt.Fprintf(&b, "BEGIN;\n%s;\nSET LOCAL search_path = %s, pg_temp;\n", c.lockSQL(), c.quoted())
	for v := from; v > max(from-n, 0); v-- {
		m := migrations[v-1]
		fmt.Fprintf(&b, "\n-- %s\n%s\nDELETE FROM schema_migrations WHERE version = %d;\n", m.name, m.down, m.version)
	}
	b.WriteString("\nCOMMIT;\n")
	return b.String(), nil
}
