package main

import (
	"os"
	"path/filepath"
	"time"
)

// syncTimes measures what the disk takes for the least that a durable commit costs here: 4 KiB appended and synced, so
// many times in a row for one sample. bbolt does that twice for each commit, once for the pages and once for the page
// that makes them count.
func syncTimes(dir string, samples, atOnce int) (latencies, error) {
	f, err := os.Create(filepath.Join(dir, "sync"))
	if err != nil {
		return latencies{}, err
	}
	defer f.Close()
	page := make([]byte, 4096)
	took := make([]time.Duration, samples)
	for i := range took {
		begin := time.Now()
		for range atOnce {
			if _, err := f.Write(page); err != nil {
				return latencies{}, err
			}
			if err := fdatasync(f); err != nil {
				return latencies{}, err
			}
		}
		took[i] = time.Since(begin)
	}
	return summarise(took), nil
}
