package pagefile

import "slices"

// bucketRef is a bucket with a tree of its own.
type bucketRef struct {
	name []byte // kept only for emit
	root uint64
}

// leaf emits the entries of p and goes down into its buckets.
func (t *traversal) leaf(p *page, at place, depth int) bool {
	id := p.id
	if t.emit != nil && !t.emit(p, t.f.offset(id), t.bucket, at) {
		return false
	}
	refs, ok := t.buckets(p, at)
	if !ok {
		return false
	}
	// From here on p is not valid any more: the window moves.
	for _, ref := range refs {
		t.bucket = append(t.bucket, ref.name)
		if !t.tree(ref.root, id, place{root: true, doubtful: at.doubtful}, depth+1) {
			return false
		}
		t.bucket = t.bucket[:len(t.bucket)-1]
	}
	return true
}

// buckets deals with the inline buckets of p and returns the others.
func (t *traversal) buckets(p *page, at place) (refs []bucketRef, goOn bool) {
	for i := range p.count {
		e := p.element(i)
		if !e.isBucket() {
			continue
		}
		ref, fault := t.readBucket(p, e)
		if fault == nil && ref.root == 0 {
			if fault = t.inlineBucket(p, ref.name, at.doubtful); fault == nil {
				t.meet(ref.name, at)
				continue
			}
		}
		if fault == nil {
			t.meet(ref.name, at)
			refs = append(refs, ref)
		} else if !t.loseBucket(fault, at) {
			return nil, false
		}
	}
	return refs, t.err == nil
}

// loseBucket reports a bucket of which nothing can be made out, perhaps not even its name. In the tree of the file it is
// then one that was not met; elsewhere its page counts as missed.
func (t *traversal) loseBucket(fault *DamageError, at place) bool {
	if at.top {
		return t.report(fault)
	}
	return t.lose(fault, at)
}

// meet notes a bucket. One that is not met is missing as a whole, whatever became of its name.
func (t *traversal) meet(name []byte, at place) {
	if t.met != nil && at.top && !at.doubtful {
		t.met(name)
	}
}

// readBucket reads a bucket's header, and into t.inline its page where it is inline.
func (t *traversal) readBucket(p *page, e element) (bucketRef, *DamageError) {
	var ref bucketRef
	if e.vsize < bucketSize || e.vsize > t.f.pageSize || !t.f.usable(p, e) {
		return ref, damage(p.id, "it has a bucket of an impossible size or in an impossible place")
	}
	off := t.f.offset(p.id) + e.start
	if t.emit != nil {
		ref.name = make([]byte, e.ksize)
		if err := t.rd.into(ref.name, off); err != nil {
			return ref, &DamageError{Page: p.id, What: "a bucket's name cannot be read", Err: err}
		}
	}
	value := resize(&t.inline, e.vsize)
	if err := t.rd.into(value, off+e.ksize); err != nil {
		return ref, &DamageError{Page: p.id, What: "a bucket cannot be read", Err: err}
	}
	ref.root = order.Uint64(value)
	return ref, nil
}

// inlineBucket deals with the bucket in t.inline, a part of page p.
func (t *traversal) inlineBucket(p *page, name []byte, doubtful bool) *DamageError {
	ip, fault := inlinePage(p.id, t.inline)
	if fault != nil {
		return fault
	}
	k := keys{}
	if fault := k.inspectInline(ip); fault != nil {
		if t.strict {
			return fault
		}
		t.report(fault)
		if t.missed != nil && !doubtful {
			t.missed(Gap{Bucket: append(slices.Clone(t.bucket), name)}, false)
		}
		doubtful = true
		ip.count = ip.readable()
	}
	if t.emit != nil && !t.emit(ip, -1, append(slices.Clip(t.bucket), name), place{root: true, doubtful: doubtful}) {
		t.err = errStopped
	}
	return nil
}

// inlinePage finds the page within the value of an inline bucket, which is a part of page id.
func inlinePage(id uint64, value []byte) (*page, *DamageError) {
	if len(value) < bucketSize+headerSize {
		return nil, damage(id, "an inline bucket is cut short")
	}
	ip := parsePage(value[bucketSize:], 0)
	ip.id, ip.extent, ip.inline = id, int64(len(ip.head)), true
	if !ip.isLeaf() {
		return nil, damage(id, "an inline bucket is no leaf page, but has the flags %#x", ip.flags)
	}
	return &ip, nil
}

// inspectInline is inspect for the page of an inline bucket, which fills its value to the last byte and holds no buckets.
func (k *keys) inspectInline(p *page) *DamageError {
	if !p.tableFits() {
		return damage(p.id, "an inline bucket has no room for the %d entries that it says it has", p.count)
	}
	if fault := k.inspect(p, place{root: true}); fault != nil {
		fault.What = "in an inline bucket: " + fault.What
		return fault
	}
	end := p.dataStart()
	for i := range p.count {
		e := p.element(i)
		if e.isBucket() {
			return damage(p.id, "an inline bucket holds another bucket")
		}
		end = e.end()
	}
	if end != p.extent {
		return damage(p.id, "an inline bucket has %d bytes, of which it uses %d", p.extent, end)
	}
	return nil
}
