package torture

import (
	"fmt"
	"os"
	"strings"
	"testing"
)

// residentAnonymous is the memory that the process really has, without the files that it maps.
func residentAnonymous(t *testing.T, p *process) int {
	t.Helper()
	b, err := os.ReadFile(fmt.Sprintf("/proc/%d/status", p.pid()))
	if err != nil {
		t.Fatal(err)
	}
	kb := 0
	for line := range strings.Lines(string(b)) {
		fmt.Sscanf(line, "RssAnon: %d kB", &kb)
	}
	return kb << 10
}

// descriptors is how many files and connections it has open.
func descriptors(t *testing.T, p *process) int {
	t.Helper()
	open, err := os.ReadDir(fmt.Sprintf("/proc/%d/fd", p.pid()))
	if err != nil {
		t.Fatal(err)
	}
	return len(open)
}
