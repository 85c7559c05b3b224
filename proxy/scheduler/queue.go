package scheduler

// queue is a first-in-first-out list of pointers that reuses its memory.
type queue[T any] struct {
	items []T
	head  int
}

func (q *queue[T]) len() int { return len(q.items) - q.head }

func (q *queue[T]) push(one T) { q.items = append(q.items, one) }

// pop takes the first one; there must be one.
func (q *queue[T]) pop() T {
	one := q.items[q.head]
	clear(q.items[q.head : q.head+1]) // nothing is kept alive by it
	q.head++
	switch {
	case q.head == len(q.items):
		q.items, q.head = q.items[:0], 0
	case q.head > 256 && q.head*2 > len(q.items):
		n := copy(q.items, q.items[q.head:])
		clear(q.items[n:])
		q.items, q.head = q.items[:n], 0
	}
	return one
}
