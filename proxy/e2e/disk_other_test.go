//go:build !linux

package e2e

// holdDiskEnv and holdDisk are Linux's, see disk_linux_test.go.
const holdDiskEnv = "POSTERN_E2E_DISK"

func holdDisk(string) int { return 1 }
