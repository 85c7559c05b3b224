// Package pgstore keeps the fleet's history and health in Postgres: events, attempts, the state of endpoints as each
// instance sees it, and the views over all of them. It is the only door to Postgres and holds every SQL statement.
//
// It promises: a batch is written whole or not at all; a row that arrives twice counts once; the latest version of an
// event wins, in whatever order versions arrive; text and numbers that Postgres cannot hold are made to fit, never
// refused. Every call is one transaction with its own limits of time and its own search path, without session state and
// without named statements, so that it works behind a pooler in transaction mode. Migrations may be run by any number of
// instances at once.
//
// It leaves out: when to write, what to do when Postgres is away (Classify says what kind of failure an error is), and
// where rows come from.
package pgstore
