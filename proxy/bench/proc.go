package main

import (
	"errors"
	"fmt"
	"io/fs"
	"os"
	"path/filepath"
	"strconv"
	"strings"
	"syscall"
	"time"
)

var errProc = errors.New("the process's entry in /proc cannot be understood; CPU and memory are measured on Linux only")

// cpuOf is the processor time that a process has used, in user and kernel mode together, to the nanosecond: the clock of
// /proc/PID/stat has ticks of 10 ms, which is more than an idle Postern uses in ten seconds. It is the sum over the
// threads that there are: one that ended takes its time with it, and a Go program rarely ends one.
func cpuOf(pid int) (total time.Duration, err error) {
	threads, err := filepath.Glob(fmt.Sprintf("/proc/%d/task/*/schedstat", pid))
	if err != nil || len(threads) == 0 {
		return 0, errors.Join(errProc, err)
	}
	for _, file := range threads {
		text, err := os.ReadFile(file)
		if errors.Is(err, fs.ErrNotExist) || errors.Is(err, syscall.ESRCH) {
			continue // it ended since
		}
		used, err2 := parseSchedstat(string(text))
		if err != nil || err2 != nil {
			return 0, errors.Join(errProc, err)
		}
		total += used
	}
	return total, nil
}

// parseSchedstat reads the first of three numbers: nanoseconds on a processor.
func parseSchedstat(text string) (time.Duration, error) {
	used, _, _ := strings.Cut(text, " ")
	ns, err := strconv.ParseInt(used, 10, 64)
	if err != nil {
		return 0, errProc
	}
	return time.Duration(ns), nil
}

// memory is resident memory in MB (10^6 bytes): all of it, and the part that is no file's.
type memory struct{ all, anonymous float64 }

func memoryOf(pid int) (memory, error) {
	text, err := os.ReadFile(fmt.Sprintf("/proc/%d/status", pid))
	if err != nil {
		return memory{}, errors.Join(errProc, err)
	}
	return parseStatus(string(text))
}

func parseStatus(text string) (memory, error) {
	found := map[string]float64{}
	for line := range strings.Lines(text) {
		name, value, _ := strings.Cut(line, ":")
		if kib, err := strconv.ParseFloat(strings.TrimSuffix(strings.TrimSpace(value), " kB"), 64); err == nil {
			found[name] = kib * 1024 / 1e6
		}
	}
	if found["VmRSS"] == 0 || found["RssAnon"] == 0 {
		return memory{}, errProc
	}
	return memory{found["VmRSS"], found["RssAnon"]}, nil
}

// watchMemory samples a process until the returned function is called, which returns the most that was seen.
func watchMemory(pid int) (peak func() memory) {
	quit, result := make(chan struct{}), make(chan memory)
	go func() {
		var most memory
		tick := time.NewTicker(20 * time.Millisecond)
		defer tick.Stop()
		for {
			if m, err := memoryOf(pid); err == nil {
				most = memory{max(most.all, m.all), max(most.anonymous, m.anonymous)}
			}
			select {
			case <-quit:
				result <- most
				return
			case <-tick.C:
			}
		}
	}()
	return func() memory {
		close(quit)
		return <-result
	}
}
