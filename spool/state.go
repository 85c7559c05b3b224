package spool

import (
	bolt "go.etcd.io/bbolt"

	"postern/spool/internal/layout"
)

// stateOp writes one endpoint's limiter state.
type stateOp struct {
	endpoint string
	state    []byte
	done     func(error)
}

func (op *stateOp) size() int     { return len(op.state) + len(op.endpoint) + 64 }
func (op *stateOp) lasting() bool { return false }

func (op *stateOp) apply(t *txn) error {
	t.putState(op.endpoint, op.state)
	return nil
}

func (op *stateOp) settle(err error) {
	if op.done != nil {
		op.done(err)
	}
}

// putState replaces the stored state; an empty one removes it.
func (t *txn) putState(endpoint string, state []byte) {
	if len(state) == 0 {
		t.del(layout.State, []byte(endpoint))
		return
	}
	t.put(layout.State, []byte(endpoint), sealText(layout.KindState, state))
}

// SaveEndpointState stores an endpoint's state, an empty one removes it. done, which may be nil, is called by the
// committer once the state is on disk, or with the error that kept it from being so; it must not block. A refusal that is
// known at once comes before SaveEndpointState returns.
func (s *Spool) SaveEndpointState(endpoint string, state []byte, done func(error)) {
	op := &stateOp{endpoint: endpoint, state: append([]byte(nil), state...), done: done}
	if _, err := s.queue.add(op); err != nil {
		op.settle(err)
	}
}

// EndpointStates returns the stored states by endpoint. One that cannot be decoded is left out.
func (s *Spool) EndpointStates() map[string][]byte {
	states := make(map[string][]byte)
	_ = s.store.view(func(tx *bolt.Tx) error {
		return tx.Bucket(layout.State.Name()).ForEach(func(k, v []byte) error {
			if fields, err := layout.Fields(layout.KindState, v); err == nil {
				states[string(k)] = append([]byte(nil), fields...)
			}
			return nil
		})
	})
	return states
}
