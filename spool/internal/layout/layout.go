// Package layout fixes what the spool's bytes look like: the names of the buckets, the form of their keys, and the
// frame and field encoding of their records.
//
// It promises that a record altered by a single bit is refused, that a decoder never panics and never allocates more
// than its input is long, and that keys sort in the order in which the spool reads them. It knows nothing about what
// the fields mean; that is package spool's business.
package layout

// Format is the version of the whole layout, stored in the meta bucket. A spool with a higher number is left untouched; one
// with a lower number is taken over as it is: version 2 added sealed parts of records.
const Format = 2

// Bucket is the number of a bucket; it indexes arrays of handles.
type Bucket uint8

// The buckets. Records stand in Events, Progress, Dead, Done, Idem, Outbox, Refused, Endpoints, State and Minutes;
// Due, IDs, IdemQueue and Expiry are indexes that can be rebuilt from them.
const (
	Events    Bucket = iota // seq -> the immutable event
	Progress                // seq -> what changes, once an event has been tried or touched by a person
	Due                     // endpoint ID | due time | seq -> nothing
	IDs                     // packed event ID -> seq
	Dead                    // seq -> a dead letter, whose payload stays in Events
	Done                    // seq -> the summary of a delivered event
	Idem                    // hash of a key -> whose it is
	IdemQueue               // time | hash -> nothing, for the expiry of Idem
	Outbox                  // index -> one row for the central store
	Endpoints               // name -> ID and counts
	State                   // name -> the limiter's state
	Minutes                 // minute -> counts of that minute
	Expiry                  // time | seq -> nothing, for events with a TTL
	Aside                   // seq -> a record that could not be decoded
	Refused                 // index -> a row of the outbox that the central store refused
	Meta                    // format, instance, counters
	NumBuckets
)

var names = [NumBuckets]string{
	"events", "progress", "due", "ids", "dead", "done", "idem", "idemq", "outbox", "endpoints", "state",
	"minutes", "expiry", "aside", "refused", "meta",
}

// Name returns the bucket's name in the file.
func (b Bucket) Name() []byte { return []byte(names[b]) }

// String returns the bucket's name.
func (b Bucket) String() string { return names[b] }

// ByName is the reverse of Name; ok is false for a name that is no bucket of this layout.
func ByName(name []byte) (b Bucket, ok bool) {
	for i, n := range names {
		if n == string(name) {
			return Bucket(i), true
		}
	}
	return 0, false
}

// Keys of the meta bucket.
var (
	KeyFormat   = []byte("format")   // one byte, not framed: it must stay readable for every later version
	KeyInstance = []byte("instance") // the instance ID as text, framed
	KeyCounters = []byte("counters") // framed
	KeyBlind    = []byte("blind")    // the secret that hashes are hashed with once more, framed
	KeyKeys     = []byte("keys")     // the IDs of the keys that records are sealed with, framed
	KeyStale    = []byte("stale")    // there, with no value, while free pages have what was under older keys: a copy is wanted
)
