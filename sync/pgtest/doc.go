// Package pgtest gives tests and benchmarks a real Postgres: the one that POSTERN_TEST_DATABASE_URL names, else one of the
// test binary's own, started from the programs found on the machine in a temporary folder and removed at the end.
//
// It promises one schema per test, dropped afterwards, and that a server which it started is gone when the test binary
// is, killed ones included (on Linux; a killed one leaves its folder in the temporary directory). A test that needs to
// stop, freeze or restart a server, or to fill its disk, starts its own with Start or StartOn. It leaves out what is in
// the schema: that is pgstore's. It is never part of the program.
package pgtest
