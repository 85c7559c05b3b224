// Package stage has what tests of the whole program share when they look at it from outside: free addresses, small file
// systems of their own that can be filled and made read-only, and a build of Postern whose wall clock can be set.
//
// It promises that nothing stays mounted and no file is left outside the directories that it was given, however a test
// ends. It leaves out what a test expects: its functions return errors, and judge nothing. Only tests import it.
package stage

import (
	"errors"
	"fmt"
	"math/rand/v2"
	"net"
)

// FreeAddr finds a port of 127.0.0.1 that is free now. It lies below those that the system gives out by itself: one of
// those could be given to somebody else before it is used.
func FreeAddr() (string, error) {
	for range 100 {
		ln, err := net.Listen("tcp", fmt.Sprintf("127.0.0.1:%d", 10_000+rand.IntN(20_000)))
		if err == nil {
			return ln.Addr().String(), ln.Close()
		}
	}
	return "", errors.New("no free port found")
}
