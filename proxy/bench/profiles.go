package main

import (
	"errors"
	"fmt"
	"io"
	"net/http"
	"os"
	"path/filepath"
)

// profileSeconds is how long a CPU profile takes. A load that ends earlier has a profile with an idle end.
const profileSeconds = 3

// profiled takes a CPU profile of a Postern while do runs, and afterwards one of all that it allocated, where the command
// line asks for profiles; they are for go tool pprof. Taking them costs a few per cent of what is measured meanwhile.
func (p *postern) profiled(do func() error) error {
	if p.profiles == nil {
		return do()
	}
	name := p.profiles()
	taken := make(chan error, 1)
	go func() { taken <- p.fetch(fmt.Sprintf("profile?seconds=%d", profileSeconds), name+".cpu.pprof") }()
	err := do()
	return errors.Join(err, <-taken, p.fetch("allocs", name+".allocs.pprof"))
}

// fetch writes one profile to a file.
func (p *postern) fetch(profile, file string) error {
	resp, err := p.client.Get("http://" + p.admin + "/debug/pprof/" + profile)
	if err != nil {
		return err
	}
	defer resp.Body.Close()
	text, err := io.ReadAll(resp.Body)
	if err != nil {
		return err
	}
	if resp.StatusCode != http.StatusOK {
		return fmt.Errorf("%s: status %d: %s", profile, resp.StatusCode, text)
	}
	return os.WriteFile(file, text, 0o644)
}

// profileNames gives each profile a file name: the group, and a number, in the order of measuring.
func (l *lab) profileNames() func() string {
	if l.profiles == "" {
		return nil
	}
	return func() string {
		l.taken++
		return filepath.Join(l.profiles, fmt.Sprintf("%s-%02d", l.group().Name, l.taken))
	}
}
