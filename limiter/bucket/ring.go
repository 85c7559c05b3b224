package bucket

import "sort"

// ring holds send times in ascending order, as nanoseconds since a base time. It grows by doubling and never beyond
// what is asked for, so that an endpoint that sends little costs little.
type ring struct {
	buf  []int64
	head int
	n    int
}

// at returns the i-th oldest time.
func (r *ring) at(i int) int64 {
	i += r.head
	if i >= len(r.buf) {
		i -= len(r.buf)
	}
	return r.buf[i]
}

func (r *ring) set(i int, t int64) {
	i += r.head
	if i >= len(r.buf) {
		i -= len(r.buf)
	}
	r.buf[i] = t
}

// newest returns the k-th newest time, k = 1 being the last.
func (r *ring) newest(k int) int64 { return r.at(r.n - k) }

// add inserts t at its place; the oldest gives way where the ring holds most already. Times come nearly in order,
// because a request leaves soon after its permit.
func (r *ring) add(t int64, most int) {
	if r.n > most {
		r.drop(r.n - most)
	}
	if r.n == most {
		if most == 0 || t <= r.at(0) {
			return
		}
		r.drop(1)
	}
	if r.n == len(r.buf) {
		r.resize(min(max(2*len(r.buf), 8), most))
	}
	i := r.n
	r.n++
	for ; i > 0 && r.at(i-1) > t; i-- {
		r.set(i, r.at(i-1))
	}
	r.set(i, t)
}

// drop forgets the k oldest.
func (r *ring) drop(k int) {
	r.n -= k
	if r.n == 0 {
		r.head = 0
		return
	}
	r.head = (r.head + k) % len(r.buf)
}

// older returns how many times are at or before t.
func (r *ring) older(t int64) int {
	return sort.Search(r.n, func(i int) bool { return r.at(i) > t })
}

func (r *ring) resize(size int) {
	buf := make([]int64, size)
	for i := range r.n {
		buf[i] = r.at(i)
	}
	r.buf, r.head = buf, 0
}
