package spool

import "slices"

// commitKept writes the kept results: all at once, else in smaller and smaller pieces, so that neither a scarce reserve
// nor one bad result holds up the rest.
func (s *Spool) commitKept() error {
	c := &s.committer
	size := len(c.kept)
	for len(c.kept) > 0 {
		n := min(max(size, 1), len(c.kept), maxBatchOps)
		err := s.commit(c.kept[:n])
		switch {
		case err == nil:
			c.kept = slices.Clone(c.kept[n:])
		case isVisible(err):
			return err // they are there: smaller pieces would only find that out
		case n == 1:
			c.kept = append(slices.Clone(c.kept[1:]), c.kept[0])
			c.dropOldState()
			return err
		default:
			size = n / pieces
		}
	}
	return nil
}

// dropOldState takes the endpoint's state from the result that was put last if another one, which is younger, has one
// too: written later, the older state would replace the younger one.
func (c *committer) dropOldState() {
	last, ok := c.kept[len(c.kept)-1].(*finishOp)
	if !ok {
		return
	}
	for _, op := range c.kept[:len(c.kept)-1] {
		f, ok := op.(*finishOp)
		if ok && f.result.EndpointState != nil && f.lease.Event.Endpoint == last.lease.Event.Endpoint {
			last.result.EndpointState = nil
			return
		}
	}
}
