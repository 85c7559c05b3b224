// Package retry decides what follows an attempt: delivered, tried again after how long, or given up and why.
//
// It promises that the decision is a function of its inputs alone (policy, outcome, counts, clock and random source are
// handed in), that no delay ever overflows or exceeds its bound, and that a Retry-After header can neither cause a hot
// loop nor hold an event longer than the policy's cap. It also names the failure classes, whose texts are the contract's
// and appear unchanged in JSON, metrics and tables.
//
// It leaves out everything that acts: it keeps no time, sends nothing, and knows neither the spool nor the breaker.
package retry
