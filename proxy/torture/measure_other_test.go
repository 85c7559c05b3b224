//go:build !linux

package torture

import "testing"

// residentAnonymous and descriptors are told by Linux alone.
func residentAnonymous(*testing.T, *process) int { return 0 }

func descriptors(*testing.T, *process) int { return 0 }
