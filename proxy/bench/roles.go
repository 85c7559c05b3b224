package main

import (
	"bufio"
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"os"
	"os/exec"
	"syscall"
	"time"
)

// roleArg as the first argument makes this program play a role for another copy of itself:
//
//	bench role NAME JSON
//
// A role that serves prints one line of JSON with its address and ends when its standard input does, so that none
// outlives the run. The load generator prints one line with its result.
const roleArg = "role"

// address is the first line of a role that serves.
type address struct{ Addr string }

func playRole(args []string, stdin io.Reader, stdout io.Writer) error {
	if len(args) != 2 {
		return errors.New("a role needs a name and its parameters")
	}
	switch args[0] {
	case "load":
		return roleLoad(args[1], stdout)
	case "receiver":
		return roleReceiver(stdin, stdout)
	case "answer":
		return roleAnswer(stdin, stdout)
	case "proxy":
		return roleProxy(args[1], stdin, stdout)
	case "relay":
		return roleRelay(args[1], stdin, stdout)
	case "queue":
		return roleQueue(args[1], stdin, stdout)
	}
	return fmt.Errorf("no role is called %q", args[0])
}

// child is a running role.
type child struct {
	cmd   *exec.Cmd
	stdin io.WriteCloser
	lines *bufio.Reader
	addr  string
}

// startRole starts a role that serves, and waits for its address.
func startRole(ctx context.Context, name string, parameters any) (*child, error) {
	cmd, err := roleCommand(ctx, name, parameters)
	if err != nil {
		return nil, err
	}
	c := &child{cmd: cmd}
	if c.stdin, err = cmd.StdinPipe(); err != nil {
		return nil, err
	}
	out, err := cmd.StdoutPipe()
	if err != nil {
		return nil, err
	}
	c.lines = bufio.NewReader(out)
	if err := cmd.Start(); err != nil {
		return nil, err
	}
	var a address
	if err := c.read(&a); err != nil {
		c.stop()
		return nil, fmt.Errorf("starting the role %s: %w", name, err)
	}
	c.addr = a.Addr
	return c, nil
}

// roleProgram is this program; a test may put in one that starts faster than itself.
var roleProgram = os.Executable

func roleCommand(ctx context.Context, name string, parameters any) (*exec.Cmd, error) {
	self, err := roleProgram()
	if err != nil {
		return nil, err
	}
	text, err := json.Marshal(parameters)
	if err != nil {
		return nil, err
	}
	cmd := exec.CommandContext(ctx, self, roleArg, name, string(text))
	cmd.Stderr = os.Stderr
	apart(cmd)
	return cmd, nil
}

// apart keeps Ctrl-C from reaching the child: this process ends its children itself, in order.
func apart(cmd *exec.Cmd) {
	cmd.SysProcAttr = &syscall.SysProcAttr{Setpgid: true}
	cmd.WaitDelay = 5 * time.Second
}

// ask writes one command line and reads the answer.
func (c *child) ask(command string, answer any) error {
	if _, err := io.WriteString(c.stdin, command+"\n"); err != nil {
		return err
	}
	return c.read(answer)
}

func (c *child) read(v any) error {
	line, err := c.lines.ReadBytes('\n')
	if err != nil {
		return err
	}
	return json.Unmarshal(line, v)
}

func (c *child) pid() int { return c.cmd.Process.Pid }

// stop ends the role.
func (c *child) stop() {
	c.stdin.Close()
	c.cmd.Wait()
}

// runLoad has the load generator do one load, in a process of its own.
func runLoad(ctx context.Context, s loadSpec) (loadResult, error) {
	var r loadResult
	cmd, err := roleCommand(ctx, "load", s)
	if err != nil {
		return r, err
	}
	out, err := cmd.Output()
	if err != nil {
		return r, fmt.Errorf("the load generator: %w", err)
	}
	if err := json.Unmarshal(out, &r); err != nil {
		return r, err
	}
	return r, r.check()
}
