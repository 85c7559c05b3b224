//go:build !race

package pagefile

const raceDivisor = 1
