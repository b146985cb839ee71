// Copyright 2026 The Weft Authors
// SPDX-License-Identifier: Apache-2.0

// Package quiet keeps a line that repeats from filling a log.
package quiet

import (
	"context"
	"log/slog"
	"maps"
	"sync"
	"time"
)

// A pause between two lines of a kind begins at firstPause and doubles up to
// maxPause.
const (
	firstPause = time.Second
	maxPause   = 10 * time.Minute
)

// maxKinds bounds the kinds that are told apart.
const maxKinds = 1 << 10

// Log logs lines of several kinds. The first line of a kind is logged at once, and
// begins a pause. Lines within the pause are counted. The first line behind the
// pause is logged with that count, as left_out, and begins a pause twice as long. A
// kind of which nothing came for maxPause begins anew.
//
// There should be few kinds: a reason or a peer, not an address or a text. A stranger may come as
// another peer each time, so kinds beyond maxKinds count as one. The zero value is ready. The methods may
// be called from several goroutines.
type Log[Kind comparable] struct {
	mu     sync.Mutex
	kinds  map[Kind]*repeated
	others repeated // all further kinds
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
	r := l.of(kind, now)
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

// of returns what is known of a kind. A kind that was silent for maxPause would begin anew, and gives its place
// to others.
func (l *Log[Kind]) of(kind Kind, now time.Time) *repeated {
	if r := l.kinds[kind]; r != nil {
		return r
	}
	if len(l.kinds) >= maxKinds && !now.Before(l.others.next) {
		maps.DeleteFunc(l.kinds, func(_ Kind, r *repeated) bool { return now.Sub(r.seen) >= maxPause })
	}
	if len(l.kinds) >= maxKinds {
		return &l.others
	}
	if l.kinds == nil {
		l.kinds = map[Kind]*repeated{}
	}
	r := &repeated{}
	l.kinds[kind] = r
	return r
}
