package cli

import (
	"fmt"
	"runtime"
)

type versionCmd struct {
	JSON bool `name:"json" help:"Print JSON."`
}

// Help is shown under the command's usage.
func (versionCmd) Help() string {
	return "Example:\n\n    postern version\n    postern version --json"
}

// Run prints the version, the Go release and the platform.
func (c *versionCmd) Run(s *session) error {
	if c.JSON {
		return s.encode(map[string]string{
			"version": Version, "go": runtime.Version(), "os": runtime.GOOS, "arch": runtime.GOARCH,
		})
	}
	_, err := fmt.Fprintf(s.out, "postern %s (%s, %s/%s)\n", Version, runtime.Version(), runtime.GOOS, runtime.GOARCH)
	return err
}
