package stage

import "errors"

// ErrNoDisk means that this machine lets nobody mount a file system, not even in a namespace of its own.
var ErrNoDisk = errors.New("this machine allows no mount namespace")

// Kind is a kind of file system for a small disk.
type Kind string

// The kinds. A loop is a real ext4 in a file: it needs root, a free loop device and mkfs.ext4.
const (
	Tmpfs Kind = "tmpfs"
	Loop  Kind = "ext4"
)
