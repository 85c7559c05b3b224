//go:build !linux

package stage

// Disk is Linux's, see disk_linux.go.
type Disk struct {
	Path   string
	Holder int
	Dir    string
}

// HoldDisk never has anything to hold.
func HoldDisk() (held bool, code int) { return false, 0 }

// NewDisk always fails.
func NewDisk(string, Kind, int) (*Disk, error) { return nil, ErrNoDisk }

// Remount is never called.
func (*Disk) Remount(bool) error { return ErrNoDisk }

// Fill is never called.
func (*Disk) Fill() (string, error) { return "", ErrNoDisk }

// Close does nothing.
func (*Disk) Close() error { return nil }
