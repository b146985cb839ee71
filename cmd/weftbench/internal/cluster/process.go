// Copyright 2026 The Weft Authors
// SPDX-License-Identifier: Apache-2.0

package cluster

import (
	"bufio"
	"errors"
	"fmt"
	"io"
	"os"
	"os/exec"
	"strings"
	"time"
)

// process is a child. It ends when its standard input does, so it does not
// outlive this process, however that ends.
type process struct {
	cmd   *exec.Cmd
	stdin io.Closer
	log   string
	ended chan struct{} // closed when it is gone
	err   error         // of Wait, once ended is closed
}

// startProcess starts a command line with its output appended to a file.
func startProcess(args []string, log string) (*process, error) {
	out, err := os.OpenFile(log, os.O_CREATE|os.O_APPEND|os.O_WRONLY, 0o644)
	if err != nil {
		return nil, err
	}
	defer func() { _ = out.Close() }() // the child has a descriptor of its own
	p := &process{cmd: exec.Command(args[0], args[1:]...), log: log, ended: make(chan struct{})}
	p.cmd.Stdout, p.cmd.Stderr = out, out
	if p.stdin, err = p.cmd.StdinPipe(); err != nil {
		return nil, err
	}
	if err := p.cmd.Start(); err != nil {
		return nil, fmt.Errorf("start %s: %w", args[0], err)
	}
	go func() {
		p.err = p.cmd.Wait()
		close(p.ended)
	}()
	return p, nil
}

func (p *process) running() bool {
	select {
	case <-p.ended:
		return false
	default:
		return true
	}
}

// kill ends the process with SIGKILL and waits until it is gone.
func (p *process) kill() error {
	if err := p.cmd.Process.Kill(); err != nil && !errors.Is(err, os.ErrProcessDone) {
		return err
	}
	<-p.ended
	return nil
}

// stop ends the process by ending its standard input, and kills it if that does
// not help in time.
func (p *process) stop(patience time.Duration) error {
	_ = p.stdin.Close() // one that is gone has closed its end
	select {
	case <-p.ended:
		if p.err != nil {
			return fmt.Errorf("process %d: %w%s", p.cmd.Process.Pid, p.err, p.tail())
		}
		return nil
	case <-time.After(patience):
		return errors.Join(fmt.Errorf("process %d did not stop within %v%s", p.cmd.Process.Pid, patience, p.tail()), p.kill())
	}
}

// tail returns the end of the process's output.
func (p *process) tail() string {
	f, err := os.Open(p.log)
	if err != nil {
		return ""
	}
	defer func() { _ = f.Close() }() // only read
	var lines []string
	for s := bufio.NewScanner(f); s.Scan(); {
		lines = append(lines, s.Text())
		lines = lines[max(0, len(lines)-5):]
	}
	return fmt.Sprintf("; the end of %s:\n  %s", p.log, strings.Join(lines, "\n  "))
}
