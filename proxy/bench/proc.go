package main

import (
	"errors"
	"fmt"
	"os"
	"strconv"
	"strings"
	"time"
)

// clockTick is the unit of the times in /proc/PID/stat: USER_HZ, 100 on every Linux that Go runs on.
const clockTick = 10 * time.Millisecond

var errProc = errors.New("the process's entry in /proc cannot be understood; CPU and memory are measured on Linux only")

// cpuOf is the processor time that a process has used, in user and kernel mode together.
func cpuOf(pid int) (time.Duration, error) {
	text, err := os.ReadFile(fmt.Sprintf("/proc/%d/stat", pid))
	if err != nil {
		return 0, errors.Join(errProc, err)
	}
	return parseStat(string(text))
}

// parseStat reads fields 14 and 15, utime and stime. The second field is a name in brackets that may hold blanks.
func parseStat(text string) (time.Duration, error) {
	fields := strings.Fields(text[strings.LastIndexByte(text, ')')+1:])
	if len(fields) < 13 {
		return 0, errProc
	}
	user, err1 := strconv.ParseInt(fields[11], 10, 64)
	system, err2 := strconv.ParseInt(fields[12], 10, 64)
	if err1 != nil || err2 != nil {
		return 0, errProc
	}
	return time.Duration(user+system) * clockTick, nil
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
