package pgstore_test

import (
	"strings"
	"testing"

	"postern/sync/pgstore"
	"postern/sync/pgtest"
)

func TestTLS(t *testing.T) {
	server, ca := pgtest.StartTLS(t)
	_, other := pgtest.StartTLS(t)
	db := pgtest.On(t, server.DSN())
	with := func(file string) *pgstore.Store {
		return open(t, db, func(c *pgstore.Config) { c.DSN = server.TLSDSN(file) })
	}
	s := with(ca)
	if err := s.Migrate(t.Context()); err != nil {
		t.Fatal(err)
	}
	write(t, s, delivered("a", 1))
	err := with(other).Migrate(t.Context())
	if err == nil || pgstore.Classify(err) != pgstore.KindAway || !strings.Contains(err.Error(), "x509") {
		t.Errorf("a server with another certificate: %v", err)
	}
}
