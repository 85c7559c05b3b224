package pgtest

import (
	"errors"
	"os"
	"os/exec"
	"path/filepath"
	"slices"
)

// errNoPostgres says how to get one.
var errNoPostgres = errors.New("no Postgres was found: set POSTERN_TEST_DATABASE_URL, or install one (apt-get install postgresql); .ci/postgres does it")

// find returns the folder with initdb and postgres: from PATH, else Debian's newest.
func find() (string, error) {
	if path, err := exec.LookPath("initdb"); err == nil {
		if real, err := filepath.EvalSymlinks(path); err == nil {
			path = real
		}
		if _, err := os.Stat(filepath.Join(filepath.Dir(path), "postgres")); err == nil {
			return filepath.Dir(path), nil
		}
	}
	dirs, _ := filepath.Glob("/usr/lib/postgresql/*/bin")
	slices.Sort(dirs)
	for _, dir := range slices.Backward(dirs) {
		if _, err := os.Stat(filepath.Join(dir, "initdb")); err == nil {
			return dir, nil
		}
	}
	return "", errNoPostgres
}
