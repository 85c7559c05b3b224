package e2e

import (
	"bytes"
	le "encoding/binary"
	"fmt"
	"os"
	"path/filepath"
	"slices"
	"strings"
	"testing"
)

// pageOf finds a page of this type in a spool's file, and tells where it begins and how long it is. A page's number, its
// type and how many overflow pages follow it are its first bytes.
func pageOf(t *testing.T, file []byte, kind string) (from, size int64) {
	t.Helper()
	size = int64(le.LittleEndian.Uint32(file[24:]))
	flag := map[string]uint16{"branch": 1, "leaf": 2, "overflow": 2, "meta": 4}[kind]
	for from = int64(len(file))/size*size - size; from >= 0; from -= size {
		p := file[from:]
		over := le.LittleEndian.Uint32(p[12:])
		if le.LittleEndian.Uint64(p) != uint64(from/size) || le.LittleEndian.Uint16(p[8:]) != flag || kind == "overflow" && (over == 0 || over > 10) {
			continue
		}
		if kind == "overflow" {
			from += size
		}
		return from, size
	}
	t.Fatalf("the file has no page of the type %s", kind)
	return 0, 0
}

// A page of each type is overwritten under a running Postern: it goes on, or ends with code 1 and a text; never with a
// stack trace, never in a loop. After at most one restart new events are accepted and delivered, and what a check finds a
// salvage puts right.
func TestPagesDamagedWhileRunning(t *testing.T) {
	t.Parallel()
	for _, kind := range []string{"meta", "branch", "leaf", "overflow"} {
		t.Run(kind, func(t *testing.T) {
			t.Parallel()
			addr := freeAddr(t)
			p := startPostern(t, "targets: { allow_private: true }\ndefaults: { retry: { max_attempts: 10000, base_delay: 200ms, max_delay: 1s }, "+patient+" }\n")
			flood(t, p, 600, "/http://"+addr+"/")
			p.accept("POST", "/http://"+addr+"/", strings.Repeat("big", 10_000))
			file := filepath.Join(p.dataDir(), "spool.db")
			b, err := os.ReadFile(file)
			must(t, err)
			from, size := pageOf(t, b, kind)
			f, err := os.OpenFile(file, os.O_WRONLY, 0)
			must(t, err)
			_, err = f.WriteAt(bytes.Repeat([]byte{0xff}, int(size)), from)
			must(t, err)
			must(t, f.Close())
			r := newReceiverOn(t, addr, nil, nil)
			for i := range 30 { // whatever they are answered: something must look at the file
				if _, err := p.try("POST", "/http://"+addr+"/", fmt.Sprint("after ", i)); err != nil {
					break
				}
			}
			// Whenever the damage is met, the process ends with a word, and the next start goes on.
			p.eventually(patience, "a new event to arrive", func() bool {
				select {
				case <-p.exited:
					if p.code != 1 || !strings.Contains(p.log.String(), "damaged") {
						t.Fatalf("exit code %d", p.code)
					}
					p.start()
				default:
				}
				_, _ = p.try("POST", "/"+r.url("/new"), "x")
				return slices.ContainsFunc(r.requests(), func(q request) bool { return strings.HasPrefix(q.Line, "POST /new ") })
			})
			p.stop(patience)
			if log := p.log.String(); strings.Contains(log, "goroutine ") || strings.Contains(log, "panic:") {
				t.Error("a stack trace in the log")
			}
			if _, _, code := p.run("spool", "check", "--data", p.dataDir()); code != 0 {
				p.run("spool", "salvage", "--data", p.dataDir())
				if out, errs, code := p.run("spool", "check", "--data", p.dataDir()); code != 0 {
					t.Errorf("after a salvage: exit code %d: %s%s", code, out, errs)
				}
			}
		})
	}
}
