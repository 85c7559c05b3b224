//go:build race

package pagefile

// raceDivisor divides what random tests do: the race detector makes everything about ten times slower, and there is
// only one goroutine for it to look at.
const raceDivisor = 10
