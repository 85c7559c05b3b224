package delivery_test

import (
	"net"

	"golang.org/x/sys/unix"
)

// closedByPeer asks the kernel, which knows it before anybody has read from the connection.
func closedByPeer(c net.Conn) (closed bool) {
	raw, err := c.(*net.TCPConn).SyscallConn()
	if err != nil {
		return true
	}
	_ = raw.Control(func(fd uintptr) {
		info, err := unix.GetsockoptTCPInfo(int(fd), unix.IPPROTO_TCP, unix.TCP_INFO)
		closed = err == nil && info.State != unix.BPF_TCP_ESTABLISHED
	})
	return closed
}
