// Package e2e holds no code but tests: they build the real binary, start it with a real configuration on a real disk
// beside a receiver that keeps the raw bytes of what it is sent, and look at it only from outside. What one package
// can show alone is tested there; here stands what the contract promises of the whole.
package e2e
