// Package redact is the one place that knows how to show an address, a header, an error or a panic to people who are
// not to learn what was in it.
//
// It promises that nothing that comes out of it repeats a query, user info, a header's value, a body, a name from a
// certificate or from a failed look-up, or a password. Log lines pass through Attr, whatever package writes them: a value
// that is not known to be harmless shows its type alone. Texts that leave by another door (problem documents, metrics,
// rows for Postgres, standard error) take their errors from Error; TestNothingPassesBy walks the whole program and fails
// where one does not.
//
// It leaves out what an operator wrote down himself and has to recognise: file names, host names, an endpoint's url as
// far as its path. The path of an ad hoc target is hidden by whoever shows an event, which shows its origin instead.
package redact
