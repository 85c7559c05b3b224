//go:build !linux

package torture

// systemFaults are Linux's, see faults_linux_test.go.
var systemFaults []fault

// missing says what cannot be broken here.
func missing() []string { return []string{"limits, small disks and slow syncs, which are Linux's"} }
