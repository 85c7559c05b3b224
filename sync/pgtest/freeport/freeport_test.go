package freeport

import (
	"fmt"
	"net"
	"os"
	"os/exec"
	"strings"
	"testing"
)

// A port that was given out and not yet used was given out again, in this process or in another.
func TestNoPortTwice(t *testing.T) {
	seen := map[string]string{}
	note := func(who, port string) {
		if other, ok := seen[port]; ok {
			t.Errorf("port %s: for %s and for %s", port, other, who)
		}
		seen[port] = who
	}
	for range 100 {
		port, err := Next()
		if err != nil {
			t.Fatal(err)
		}
		note("this process", fmt.Sprint(port))
	}
	for n := range 3 {
		cmd := exec.Command(os.Args[0], "-test.run=^TestPrintPorts$", "-test.v")
		cmd.Env = append(os.Environ(), "FREEPORT_PRINT=1")
		in, err := cmd.StdinPipe() // it ends when this is closed
		if err != nil {
			t.Fatal(err)
		}
		out, err := cmd.StdoutPipe()
		if err != nil {
			t.Fatal(err)
		}
		if err := cmd.Start(); err != nil {
			t.Fatal(err)
		}
		defer func() {
			in.Close()
			cmd.Wait()
		}()
		for range 100 {
			var port int
			for port == 0 {
				var word string
				if _, err := fmt.Fscan(out, &word); err != nil {
					t.Fatal(err)
				}
				if text, ok := strings.CutPrefix(word, "port="); ok {
					fmt.Sscan(text, &port)
				}
			}
			note(fmt.Sprintf("child %d", n), fmt.Sprint(port))
		}
	}
}

// TestPrintPorts is the other process of TestNoPortTwice.
func TestPrintPorts(t *testing.T) {
	if os.Getenv("FREEPORT_PRINT") == "" {
		return
	}
	for range 100 {
		port, err := Next()
		if err != nil {
			t.Fatal(err)
		}
		fmt.Printf("port=%d\n", port)
	}
	var forever [1]byte
	os.Stdin.Read(forever[:])
}

func TestPortsInUseAreLeftOut(t *testing.T) {
	b, err := claim()
	if err != nil {
		t.Fatal(err)
	}
	defer b.claim.Close()
	taken := map[int]bool{}
	for range 2 * size {
		port, err := b.take()
		if err != nil {
			break
		}
		if taken[port] {
			t.Fatalf("port %d is given out while it is in use", port)
		}
		taken[port] = true
		ln, err := net.Listen("tcp", fmt.Sprintf("127.0.0.1:%d", port))
		if err != nil {
			t.Fatal(err)
		}
		defer ln.Close()
	}
	if len(taken) < size/2 {
		t.Errorf("only %d ports before none was left", len(taken))
	}
	if port, err := b.take(); err == nil {
		t.Errorf("port %d out of a block that is full", port)
	}
}
