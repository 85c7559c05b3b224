// Package syncer carries what the spool notes in its outbox to the central store, and tells the store how this instance
// and its endpoints are.
//
// It promises: every row of the outbox is written before it is marked, in the order of the outbox, so that a crash
// repeats rows and loses none; the store counts repeated ones once. A store that is slow, away, full or wrong costs
// nothing but backlog: whoever accepts and delivers never waits for this package. A row that the store refuses is found
// by halving the batch and set apart in the spool. A stop flushes what waits, within a limit of its own.
//
// It leaves out SQL, which is pgstore's, the bounds of the backlog, which are the spool's, and where the facts about
// endpoints come from: whoever builds it hands them in.
package syncer
