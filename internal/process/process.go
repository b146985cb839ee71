// Copyright 2026 The Weft Authors
// SPDX-License-Identifier: Apache-2.0

// Package process runs programs as children that cannot outlive this one.
package process

import (
	"errors"
	"fmt"
	"io"
	"os"
	"os/exec"
	"runtime"
	"strings"
	"sync"
	"syscall"
	"time"
)

// Process is a child. Callers kill what they started on every way out, with its
// process group. Should they be killed, two more things end it: its standard
// input ends, at which it is expected to stop, and on Linux the system kills it.
type Process struct {
	cmd   *exec.Cmd
	stdin io.WriteCloser
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

// Start starts the command line with its output appended to logPath.
func Start(args []string, logPath string) (*Process, error) {
	log, err := os.OpenFile(logPath, os.O_CREATE|os.O_APPEND|os.O_WRONLY, 0o644)
	if err != nil {
		return nil, fmt.Errorf("log of %s: %w", args[0], err)
	}
	defer func() { _ = log.Close() }() // the child has its own descriptor
	p := &Process{cmd: exec.Command(args[0], args[1:]...), log: logPath, ended: make(chan struct{})}
	p.cmd.Stdout, p.cmd.Stderr = log, log
	p.cmd.SysProcAttr = childAttributes()
	if p.stdin, err = p.cmd.StdinPipe(); err != nil {
		return nil, fmt.Errorf("start %s: %w", args[0], err)
	}
	started := make(chan error)
	starter() <- func() { started <- p.cmd.Start() }
	if err := <-started; err != nil {
		return nil, fmt.Errorf("start %s: %w", args[0], err)
	}
	go func() {
		p.err = p.cmd.Wait()
		close(p.ended)
	}()
	return p, nil
}

// State returns what the system says of the process, once it has ended.
func (p *Process) State() *os.ProcessState {
	<-p.ended
	return p.cmd.ProcessState
}

// PID returns the number of the process.
func (p *Process) PID() int { return p.cmd.Process.Pid }

// Running reports whether the process has not ended.
func (p *Process) Running() bool {
	select {
	case <-p.ended:
		return false
	default:
		return true
	}
}

// Tell writes a line to the standard input of the process. It must be short: a process that
// does not read, because it is paused, has room for some thousand bytes.
func (p *Process) Tell(line string) error {
	if _, err := io.WriteString(p.stdin, line+"\n"); err != nil {
		return fmt.Errorf("write to process %d: %w", p.PID(), err)
	}
	return nil
}

// Kill ends the process at once, with whatever it started, and waits until it
// is gone.
func (p *Process) Kill() error {
	if !p.Running() {
		return nil
	}
	if err := killGroup(p.cmd.Process); err != nil && !errors.Is(err, os.ErrProcessDone) {
		return fmt.Errorf("kill process %d: %w", p.PID(), err)
	}
	<-p.ended
	return nil
}

// Stop asks the process to end, by ending its standard input, and kills it if
// it does not. A node that was asked must end well.
func (p *Process) Stop(patience time.Duration) error {
	if !p.Running() {
		return p.Unexpected()
	}
	if err := p.stdin.Close(); err != nil {
		return errors.Join(fmt.Errorf("stop process %d: %w", p.PID(), err), p.Kill())
	}
	select {
	case <-p.ended:
		if p.err != nil {
			return p.Unexpected()
		}
		return nil
	case <-time.After(patience):
		return errors.Join(fmt.Errorf("process %d did not stop within %v%s", p.PID(), patience, p.tail()), p.Kill())
	}
}

// Terminate asks the process to end by SIGTERM, as supervisors do, and kills it if it
// has not ended within the grace period, which is an error. Its exit status is none.
func (p *Process) Terminate(grace time.Duration) error {
	if !p.Running() {
		return p.Unexpected()
	}
	if err := p.cmd.Process.Signal(syscall.SIGTERM); err != nil {
		return errors.Join(fmt.Errorf("terminate process %d: %w", p.PID(), err), p.Kill())
	}
	select {
	case <-p.ended:
		return nil
	case <-time.After(grace):
		return errors.Join(fmt.Errorf("process %d did not end within %v of SIGTERM%s", p.PID(), grace, p.tail()), p.Kill())
	}
}

// Unexpected describes a process that ended when nobody expected it to.
func (p *Process) Unexpected() error {
	state := "exit status 0"
	if p.err != nil {
		state = p.err.Error()
	}
	return fmt.Errorf("process %d ended by itself: %s%s", p.PID(), state, p.tail())
}

// tail returns the end of the process's log, on lines of its own.
func (p *Process) tail() string {
	data, err := os.ReadFile(p.log)
	if err != nil || len(data) == 0 {
		return ""
	}
	lines := strings.Split(strings.TrimRight(string(data), "\n"), "\n")
	lines = lines[max(0, len(lines)-8):]
	return fmt.Sprintf("; its last words (%s):\n  %s", p.log, strings.Join(lines, "\n  "))
}
