package pgtest

import "syscall"

// childAttr makes a child end when its parent does, however that happens, and run as somebody else where cred is set.
func childAttr(cred *syscall.Credential) *syscall.SysProcAttr {
	return &syscall.SysProcAttr{Credential: cred, Pdeathsig: syscall.SIGQUIT, Setpgid: true}
}
