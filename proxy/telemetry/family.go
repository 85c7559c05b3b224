package telemetry

import (
	"bytes"
	"fmt"
	"io"
	"strings"

	"github.com/VictoriaMetrics/metrics"
)

// The metric types, as TYPE lines name them.
const (
	counter   = "counter"
	gauge     = "gauge"
	histogram = "histogram"
)

// endpointBuckets is how many buckets the histograms of an endpoint have, beside the one without a bound.
const endpointBuckets = 14

// Upper bounds in seconds. Attempts end within a timeout of 15 s by default and 60 s when a request overrides it.
// Ages reach from a first try that works to a backlog of days. A commit is two syncs: under a millisecond on a good
// disk, and refused at ingest beyond 10 s.
var (
	durationBuckets = newBounds([endpointBuckets]float64{.005, .01, .025, .05, .1, .25, .5, 1, 2.5, 5, 10, 15, 30, 60})
	ageBuckets      = newBounds([endpointBuckets]float64{.01, .05, .1, .5, 1, 5, 30, 60, 300, 1800, 3600, 21600, 86400, 259200})
	commitBuckets   = []float64{.0005, .001, .0025, .005, .01, .025, .05, .1, .25, .5, 1, 2.5, 10}
)

// family is all series of one name. Each has a set of its own, because the library writes TYPE lines only when a
// global switch is on, and HELP lines without a text: with a set per family both can be written here.
type family struct {
	name, kind, help string
	set              *metrics.Set
}

func newFamily(name, kind, help string) *family {
	return &family{name: name, kind: kind, help: help, set: metrics.NewSet()}
}

func (f *family) counter(labels string) *metrics.Counter {
	return f.set.GetOrCreateCounter(f.name + labels)
}

func (f *family) histogram(labels string, bounds []float64) *metrics.PrometheusHistogram {
	return f.set.GetOrCreatePrometheusHistogramExt(f.name+labels, bounds)
}

// write leaves out a family without series: a HELP line alone would promise something that is not there.
func (f *family) write(page io.Writer) {
	var series bytes.Buffer
	f.set.WritePrometheus(&series)
	if series.Len() == 0 {
		return
	}
	writeHead(page, f.name, f.kind, f.help)
	_, _ = page.Write(series.Bytes())
}

func writeHead(w io.Writer, name, kind, help string) {
	fmt.Fprintf(w, "# HELP %s %s\n# TYPE %s %s\n", name, help, name, kind)
}

// escaper follows the text exposition format: in a label value exactly these three are escaped. Go's %q would write
// \u00e9 and \t, which Prometheus refuses.
var escaper = strings.NewReplacer(`\`, `\\`, `"`, `\"`, "\n", `\n`)

// replacement is U+FFFD, which stands for bytes that are no UTF-8.
const replacement = "\uFFFD"

// labels renders name, value pairs. Bytes that are not UTF-8 become U+FFFD, since one of them makes Prometheus drop
// the whole page.
func labels(pairs ...string) string {
	var b strings.Builder
	separator := byte('{')
	for i := 0; i+1 < len(pairs); i += 2 {
		b.WriteByte(separator)
		separator = ','
		b.WriteString(pairs[i])
		b.WriteString(`="`)
		b.WriteString(escaper.Replace(strings.ToValidUTF8(pairs[i+1], replacement)))
		b.WriteByte('"')
	}
	b.WriteByte('}')
	return b.String()
}
