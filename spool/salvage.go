package spool

import "context"

// SalvageReport says what a salvage achieved.
type SalvageReport struct {
	Recovered int64  // records that are in the new file
	Lost      int64  // events that could not be read
	Kept      string // where the damaged file is now
}

func (d *directory) salvage(ctx context.Context) (SalvageReport, error) { panic("todo") }
