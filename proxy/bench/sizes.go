package main

import "time"

// sizes say how much of everything one run does.
type sizes struct {
	conns     int           // connections of the closed loop
	body      int           // bytes of a JSON body
	load      time.Duration // one timed load
	warm      time.Duration // before it, not counted
	deliver   int64         // events of one round of accept and deliver
	queue     int64         // the same, of the queue in Postgres
	open      time.Duration // one round at a fixed rate
	rate      float64       // requests per second of that
	syncs     int           // samples of fdatasync
	backlog   int64         // events that wait
	waiting   int           // bytes of the body of one of those
	drain     int64         // events delivered out of them in one round
	endpoints int           // of a Postern that has many
	dead      int64         // events that wait for a dead endpoint
	shrink    int64         // events of shrinkBody bytes that a file has to grow for
	rest      time.Duration // how long a file must not change to be done
	idle      time.Duration
	day       int64 // attempts of one day in Postgres
}

// shrinkBody is the size of the bodies that make a spool's file grow: 200,000 of them are 400 MB.
const shrinkBody = 2000

// full is a run to quote from: about 14 minutes in five rounds.
var full = sizes{
	conns: 128, body: 500, load: 3 * time.Second, warm: time.Second, deliver: 30_000, queue: 4000, open: 5 * time.Second, rate: 1000, syncs: 500,
	backlog: 1_000_000, waiting: 1024, drain: 30_000, endpoints: 1000, dead: 100_000, shrink: 200_000, rest: 5 * time.Second, idle: 6 * time.Second, day: 10_000_000,
}

// quick is a look: about two minutes in one round.
var quick = sizes{
	conns: 128, body: 500, load: time.Second, warm: 200 * time.Millisecond, deliver: 8000, queue: 1000, open: 2 * time.Second, rate: 1000, syncs: 100,
	backlog: 100_000, waiting: 1024, drain: 8000, endpoints: 1000, dead: 10_000, shrink: 20_000, rest: 5 * time.Second, idle: 2 * time.Second, day: 500_000,
}

// sizes are those of a full or a quick run, with the duration that was asked for.
func (o options) sizes() sizes {
	s := full
	if o.quick {
		s = quick
	}
	if o.duration > 0 {
		s.load, s.open = o.duration, o.duration
	}
	return s
}
