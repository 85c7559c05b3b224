//go:build !linux

package delivery_test

import "net"

// closedByPeer is known on Linux only.
func closedByPeer(net.Conn) bool { return false }
