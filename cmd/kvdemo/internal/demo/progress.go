// Copyright 2026 The Weft Authors
// SPDX-License-Identifier: Apache-2.0

package demo

import (
	"fmt"
	"io"
	"os"
	"sync"
	"time"

	"golang.org/x/term"
)

// plainInterval is how often the status is printed where it cannot be redrawn.
const plainInterval = 2 * time.Second

// progress shows events, a line each, and below the events a line of status, which
// is redrawn on a terminal and written now and then to a file.
type progress struct {
	out   io.Writer
	fd    int // of the terminal, or -1
	start time.Time

	mu      sync.Mutex
	drawn   bool // there is a status line on the terminal
	printed time.Time
}

func newProgress(out io.Writer) *progress {
	now := time.Now()
	p := &progress{out: out, fd: -1, start: now, printed: now}
	if f, ok := out.(*os.File); ok && term.IsTerminal(int(f.Fd())) {
		p.fd = int(f.Fd())
	}
	return p
}

// event prints a line that stays.
func (p *progress) event(format string, args ...any) {
	p.mu.Lock()
	defer p.mu.Unlock()
	p.clear()
	p.line(format, args...)
	fmt.Fprintln(p.out)
}

// status shows a line of status, in the place of the line before.
func (p *progress) status(format string, args ...any) {
	p.mu.Lock()
	defer p.mu.Unlock()
	if p.fd >= 0 {
		p.clear()
		p.line(format, args...)
		p.drawn = true
		return
	}
	if time.Since(p.printed) >= plainInterval {
		p.line(format, args...)
		fmt.Fprintln(p.out)
	}
}

// line prints the text after the time since the start.
func (p *progress) line(format string, args ...any) {
	p.printed = time.Now()
	text := fmt.Sprintf("%6.1fs  %s", p.printed.Sub(p.start).Seconds(), fmt.Sprintf(format, args...))
	if p.fd >= 0 {
		if width, _, err := term.GetSize(p.fd); err == nil && width > 0 && len(text) >= width {
			text = text[:width-1] // a line that wraps cannot be redrawn
		}
	}
	fmt.Fprint(p.out, text)
}

// clear takes the status line away.
func (p *progress) clear() {
	if p.drawn {
		fmt.Fprint(p.out, "\r\x1b[K")
		p.drawn = false
	}
}

// close leaves the terminal on an empty line.
func (p *progress) close() {
	p.mu.Lock()
	defer p.mu.Unlock()
	p.clear()
}

// megabytes prints a number of bytes.
func megabytes(n uint64) string {
	if n < 100_000 {
		return fmt.Sprintf("%.1f kB", float64(n)/1e3)
	}
	return fmt.Sprintf("%.1f MB", float64(n)/1e6)
}
