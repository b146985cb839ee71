// Copyright 2026 The Weft Authors
// SPDX-License-Identifier: Apache-2.0

// Package quiet keeps a line that repeats from filling a log.
package quiet

import (
	"context"
	"log/slog"
	"sync"
	"time"
)

// A pause between two lines of a kind begins at firstPause and doubles up to
// maxPause.
const (
	firstPause = time.Second
	maxPause   = 10 * time.Minute
)

// Log logs lines of several kinds. The first line of a kind is logged at once, and
// begins a pause. Lines within the pause are counted. The first line behind the
// pause is logged with that count, as left_out, and begins a pause twice as long. A
// kind of which nothing came for maxPause begins anew.
//
// A kind is remembered for as long as the Log is, so there must be few of them: a
// reason or a known peer, not an address or a text. The zero value is ready. The
// methods may be called from several goroutines.
type Log[Kind comparable] struct {
	mu    sync.Mutex
	kinds map[Kind]*repeated
}

// repeated is what is known of a kind.
type repeated struct {
	pause   time.Duration // behind the last line that was logged
	next    time.Time     // when it ends
	seen    time.Time     // when the last line came, logged or not
	leftOut uint64        // lines since the last that was logged
}

// Log logs a line, unless it is to be counted.
func (l *Log[Kind]) Log(to *slog.Logger, level slog.Level, kind Kind, text string, args ...any) {
	ctx := context.Background()
	if !to.Enabled(ctx, level) {
		return
	}
	leftOut, due := l.due(kind, time.Now())
	if !due {
		return
	}
	if leftOut > 0 {
		args = append(args, "left_out", leftOut)
	}
	to.Log(ctx, level, text, args...)
}

// due reports whether a line that comes now is to be logged, and how many of its
// kind were left out before it.
func (l *Log[Kind]) due(kind Kind, now time.Time) (leftOut uint64, due bool) {
	l.mu.Lock()
	defer l.mu.Unlock()
	r := l.kinds[kind]
	if r == nil {
		if l.kinds == nil {
			l.kinds = map[Kind]*repeated{}
		}
		r = &repeated{}
		l.kinds[kind] = r
	}
	silent := now.Sub(r.seen)
	r.seen = now
	switch {
	case silent >= maxPause:
		r.pause = firstPause
	case now.Before(r.next):
		r.leftOut++
		return 0, false
	default:
		r.pause = min(2*r.pause, maxPause)
	}
	r.next = now.Add(r.pause)
	leftOut, r.leftOut = r.leftOut, 0
	return leftOut, true
}
