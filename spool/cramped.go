package spool

// fewAccepts is how many acceptances are tried in pieces where they do not fit together: free pages lie scattered, so that
// some of a few big events may fit. Many small ones are refused together, since bbolt scans the whole file after each
// commit that failed.
const fewAccepts = 64

// commitCramped commits what fits of a transaction that found no room: all but the acceptances comes first.
func (s *Spool) commitCramped(ops []operation, err error) {
	accepts, others := acceptsApart(ops)
	size := len(others)
	if len(accepts) == 0 {
		size /= pieces // it was tried as it is
	}
	s.commitPieces(others, size)
	if len(accepts) > fewAccepts || len(accepts) == 1 {
		s.refuse(accepts, s.refusal(accepts, err))
		return
	}
	if s.failing() {
		s.refuse(accepts, ErrUnwritable)
		return
	}
	s.commitPieces(accepts, len(accepts)/pieces)
}

func acceptsApart(ops []operation) (accepts, others []operation) {
	for _, op := range ops {
		if _, ok := op.(*appendOp); ok {
			accepts = append(accepts, op)
		} else {
			others = append(others, op)
		}
	}
	return accepts, others
}

// pieces is into how many parts a transaction is cut that found no room.
const pieces = 8

// commitPieces commits operations in order, so many at a time, and fewer where that finds no room.
func (s *Spool) commitPieces(ops []operation, size int) {
	for len(ops) > 0 {
		n := min(max(size, 1), len(ops))
		err := s.commit(ops[:n])
		switch {
		case err == nil:
			ops = ops[n:]
		case lacksRoom(err) && n > 1:
			size = n / pieces
		default:
			s.abandonOps(ops, err)
			return
		}
	}
}
