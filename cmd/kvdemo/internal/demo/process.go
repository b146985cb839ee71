// Copyright 2026 The Weft Authors
// SPDX-License-Identifier: Apache-2.0

package demo

import (
	"errors"
	"fmt"
	"io"
	"os"
	"os/exec"
	"runtime"
	"strings"
	"sync"
	"time"
)

// process is a child that cannot outlive this one. Three things see to that:
// every way out of Run kills the children's process groups; children are told
// to stop when their standard input ends, which the system closes for a parent
// that was killed; and on Linux the system kills them then.
type process struct {
	cmd   *exec.Cmd
	stdin io.Closer
	log   string        // path of the file that has its output
	ended chan struct{} // closed when the process is gone
	err   error         // of Wait, once ended is closed
}

// starter is one thread that starts all children and never ends. Linux takes
// the death of the thread that started a child for the death of the parent.
var starter = sync.OnceValue(func() chan<- func() {
	calls := make(chan func())
	go func() {
		runtime.LockOSThread()
		for call := range calls {
			call()
		}
	}()
	return calls
})

// startProcess starts the command line with its output appended to logPath.
func startProcess(args []string, logPath string) (*process, error) {
	log, err := os.OpenFile(logPath, os.O_CREATE|os.O_APPEND|os.O_WRONLY, 0o644)
	if err != nil {
		return nil, fmt.Errorf("log of a node: %w", err)
	}
	defer func() { _ = log.Close() }() // the child has its own descriptor
	p := &process{cmd: exec.Command(args[0], args[1:]...), log: logPath, ended: make(chan struct{})}
	p.cmd.Stdout, p.cmd.Stderr = log, log
	p.cmd.SysProcAttr = childAttributes()
	if p.stdin, err = p.cmd.StdinPipe(); err != nil {
		return nil, fmt.Errorf("start a node: %w", err)
	}
	started := make(chan error)
	starter() <- func() { started <- p.cmd.Start() }
	if err := <-started; err != nil {
		return nil, fmt.Errorf("start a node: %w", err)
	}
	go func() {
		p.err = p.cmd.Wait()
		close(p.ended)
	}()
	return p, nil
}

func (p *process) pid() int { return p.cmd.Process.Pid }

func (p *process) running() bool {
	select {
	case <-p.ended:
		return false
	default:
		return true
	}
}

// kill ends the process at once, with whatever it started, and waits until it
// is gone.
func (p *process) kill() error {
	if !p.running() {
		return nil
	}
	if err := killGroup(p.cmd.Process); err != nil && !errors.Is(err, os.ErrProcessDone) {
		return fmt.Errorf("kill process %d: %w", p.pid(), err)
	}
	<-p.ended
	return nil
}

// stop asks the process to end, by ending its standard input, and kills it if
// it does not. A node that was asked must end well.
func (p *process) stop(patience time.Duration) error {
	if !p.running() {
		return p.unexpected()
	}
	if err := p.stdin.Close(); err != nil {
		return errors.Join(fmt.Errorf("stop process %d: %w", p.pid(), err), p.kill())
	}
	select {
	case <-p.ended:
		if p.err != nil {
			return p.unexpected()
		}
		return nil
	case <-time.After(patience):
		return errors.Join(fmt.Errorf("process %d did not stop within %v%s", p.pid(), patience, p.tail()), p.kill())
	}
}

// unexpected describes a process that ended when nobody expected it to.
func (p *process) unexpected() error {
	state := "exit status 0"
	if p.err != nil {
		state = p.err.Error()
	}
	return fmt.Errorf("process %d ended by itself: %s%s", p.pid(), state, p.tail())
}

// tail returns the end of the process's log, on lines of its own.
func (p *process) tail() string {
	data, err := os.ReadFile(p.log)
	if err != nil || len(data) == 0 {
		return ""
	}
	lines := strings.Split(strings.TrimRight(string(data), "\n"), "\n")
	lines = lines[max(0, len(lines)-8):]
	return fmt.Sprintf("; its last words (%s):\n  %s", p.log, strings.Join(lines, "\n  "))
}
