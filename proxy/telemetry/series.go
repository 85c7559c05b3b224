package telemetry

import (
	"bufio"
	"slices"
	"strconv"
	"strings"
	"sync"
	"sync/atomic"
)

// Every endpoint has 42 lines on the page, and there may be many thousands of endpoints. So their numbers are kept here
// without a name and an object for each line, and the page is written line by line: as objects of the metrics library
// they took 2.6 KB for an endpoint, and several allocations for each line of each scrape.

// outcomeWords and reasonWords are label values, in the order of the page. Other is there only once it was counted.
var (
	outcomeWords = [...]string{OutcomeDelivered, OutcomeTransient, OutcomePermanent, Other}
	reasonWords  = [...]string{ReasonExhausted, ReasonExpired, ReasonPermanent, ReasonGone, Other}
)

// endpointSeries are the numbers of one endpoint. All of them are on the page from the endpoint's first sign of life, at
// zero: a counter that appears with the value 1 is no increase to Prometheus, and the first dead letter is the one an
// alert is for.
type endpointSeries struct {
	label         string // the endpoint's name, or the one that it shares
	pairs         string // the label as the page has it: endpoint="partner-a"
	accepted      atomic.Uint64
	outcomes      [len(outcomeWords)]atomic.Uint64
	reasons       [len(reasonWords)]atomic.Uint64
	duration, age observations
}

func newSeries(label string) *endpointSeries {
	return &endpointSeries{label: label, pairs: strings.Trim(labels("endpoint", label), "{}")}
}

// count adds one to the count of a word; one that is not among them is counted as the last.
func count(counts []atomic.Uint64, words []string, word string) {
	i := slices.Index(words, word)
	if i < 0 {
		i = len(words) - 1
	}
	counts[i].Add(1)
}

// observations are a histogram's numbers, made with the first of them.
type observations struct{ made atomic.Pointer[observed] }

type observed struct {
	mu      sync.Mutex // guards everything below
	sum     float64
	count   uint64
	buckets [endpointBuckets]uint64 // each without those before it
}

func (o *observations) add(bounds *bounds, v float64) {
	d := o.made.Load()
	if d == nil {
		o.made.CompareAndSwap(nil, new(observed))
		d = o.made.Load()
	}
	i := 0
	for i < len(bounds.upper) && v > bounds.upper[i] {
		i++
	}
	d.mu.Lock()
	d.sum += v
	d.count++
	if i < len(d.buckets) {
		d.buckets[i]++
	}
	d.mu.Unlock()
}

// bounds are the upper bounds of a histogram's buckets, and how the page has them.
type bounds struct {
	upper [endpointBuckets]float64
	texts [endpointBuckets]string
}

func newBounds(upper [endpointBuckets]float64) *bounds {
	b := &bounds{upper: upper}
	for i, v := range upper {
		b.texts[i] = strconv.FormatFloat(v, 'f', -1, 64)
	}
	return b
}

// endpointFamily is one name of the page that every endpoint has series of.
type endpointFamily struct {
	name, kind, help string
	series           func(page []byte, name string, s *endpointSeries) []byte
}

// write writes the family of these endpoints; a family without series is left out, as in family.write.
func (f endpointFamily) write(w *bufio.Writer, all []*endpointSeries) {
	if len(all) == 0 {
		return
	}
	writeHead(w, f.name, f.kind, f.help)
	for _, s := range all {
		_, _ = w.Write(f.series(w.AvailableBuffer(), f.name, s)) // Flush tells of errors
	}
}

// line appends one sample. more are further labels, with a comma before each.
func line(page []byte, name, pairs, more string, n uint64) []byte {
	page = append(page, name...)
	page = append(page, '{')
	page = append(page, pairs...)
	page = append(page, more...)
	page = append(page, '}', ' ')
	return append(strconv.AppendUint(page, n, 10), '\n')
}

// words appends the counts of words. more are the labels, one for each word.
func words(page []byte, name string, s *endpointSeries, more []string, counts []atomic.Uint64) []byte {
	for i := range counts {
		if n := counts[i].Load(); n > 0 || i < len(counts)-1 {
			page = line(page, name, s.pairs, more[i], n)
		}
	}
	return page
}

// wordLabels are the labels that words appends.
func wordLabels(name string, words []string) []string {
	more := make([]string, len(words))
	for i, word := range words {
		more[i] = "," + strings.Trim(labels(name, word), "{}")
	}
	return more
}

// histogramLines appends a histogram's samples: zeros before the first observation.
func (b *bounds) histogramLines(page []byte, name string, s *endpointSeries, o *observations) []byte {
	var now observed
	if d := o.made.Load(); d != nil {
		d.mu.Lock()
		now.sum, now.count, now.buckets = d.sum, d.count, d.buckets
		d.mu.Unlock()
	}
	upto := uint64(0)
	bucket := func(text string, n uint64) {
		page = append(page, name...)
		page = append(page, "_bucket{"...)
		page = append(page, s.pairs...)
		page = append(page, `,le="`...)
		page = append(page, text...)
		page = append(page, `"} `...)
		page = append(strconv.AppendUint(page, n, 10), '\n')
	}
	for i, n := range now.buckets {
		upto += n
		bucket(b.texts[i], upto)
	}
	bucket("+Inf", now.count)
	page = append(append(page, name...), "_sum{"...)
	page = append(append(page, s.pairs...), "} "...)
	page = append(strconv.AppendFloat(page, now.sum, 'g', -1, 64), '\n')
	page = append(page, name...)
	return line(page, "_count", s.pairs, "", now.count)
}
