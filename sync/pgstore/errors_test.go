package pgstore_test

import (
	"context"
	"errors"
	"fmt"
	"testing"

	"github.com/jackc/pgx/v5/pgconn"

	"postern/sync/pgstore"
)

func TestClassify(t *testing.T) {
	for code, want := range map[string]pgstore.Kind{
		"22003": pgstore.KindData, "22021": pgstore.KindData, "22P05": pgstore.KindData, "23505": pgstore.KindData, "23514": pgstore.KindData,
		"44000": pgstore.KindData, "54000": pgstore.KindData, "P0001": pgstore.KindData,
		"28P01": pgstore.KindSetup, "3D000": pgstore.KindSetup, "3F000": pgstore.KindSetup, "42501": pgstore.KindSetup, "42P01": pgstore.KindSetup,
		"25006": pgstore.KindSetup,
		"08006": pgstore.KindAway, "53100": pgstore.KindAway, "53300": pgstore.KindAway, "55P03": pgstore.KindAway, "57014": pgstore.KindAway,
		"57P01": pgstore.KindAway, "57P03": pgstore.KindAway, "40P01": pgstore.KindAway, "40001": pgstore.KindAway, "58030": pgstore.KindAway, "XX000": pgstore.KindAway,
		"": pgstore.KindAway,
	} {
		if got := pgstore.Classify(fmt.Errorf("write: %w", &pgconn.PgError{Code: code})); got != want {
			t.Errorf("%s is %v, want %v", code, got, want)
		}
	}
	for _, tc := range []struct {
		err  error
		want string
	}{
		{nil, "none"}, {context.DeadlineExceeded, "away"}, {errors.New("?"), "away"}, {pgstore.ErrNewerSchema, "setup"},
		{&pgconn.PgError{Code: "22000"}, "data"},
	} {
		if got := pgstore.Classify(tc.err).String(); got != tc.want {
			t.Errorf("%v is %v, want %v", tc.err, got, tc.want)
		}
	}
}
