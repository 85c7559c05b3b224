// Package stage has what tests of the whole program share when they look at it from outside: free addresses, small file
// systems of their own that can be filled and made read-only, and a build of Postern whose wall clock can be set.
//
// It promises that nothing stays mounted and no file is left outside the directories that it was given, however a test
// ends. It leaves out what a test expects: its functions return errors, and judge nothing. Only tests import it.
package stage

import (
	"fmt"

	"postern/sync/pgtest/freeport"
)

// FreeAddr is an address of 127.0.0.1 that nothing listens on, and that no other test will be given meanwhile.
func FreeAddr() (string, error) {
	port, err := freeport.Next()
	return fmt.Sprintf("127.0.0.1:%d", port), err
}
