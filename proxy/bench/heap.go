package main

import (
	"bufio"
	"fmt"
	"io"
	"strconv"
	"strings"
)

// heap is what a process has allocated since its start, by its own count: objects, and bytes.
type heap struct{ objects, bytes float64 }

// heap asks for it. To tell it stops the program for a moment, and makes a page of metrics: some hundred allocations.
func (p *postern) heap() (heap, error) {
	resp, err := p.client.Get("http://" + p.admin + "/metrics")
	if err != nil {
		return heap{}, err
	}
	defer resp.Body.Close()
	return parseHeap(resp.Body)
}

func parseHeap(page io.Reader) (heap, error) {
	found := map[string]float64{}
	for lines := bufio.NewScanner(page); lines.Scan(); {
		name, value, _ := strings.Cut(lines.Text(), " ")
		if x, err := strconv.ParseFloat(value, 64); err == nil {
			found[name] = x
		}
	}
	h := heap{found["go_memstats_mallocs_total"], found["go_memstats_alloc_bytes_total"]}
	if h.objects == 0 || h.bytes == 0 {
		return h, fmt.Errorf("/metrics does not tell what was allocated")
	}
	return h, nil
}

// per divides what came since before by so many events.
func (h heap) per(before heap, events int64) figures {
	return figures{"objects": (h.objects - before.objects) / float64(events), "bytes": (h.bytes - before.bytes) / float64(events)}
}
