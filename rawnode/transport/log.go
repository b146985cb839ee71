// Copyright 2026 The Weft Authors
// SPDX-License-Identifier: Apache-2.0

package transport

import (
	"fmt"
	"log/slog"

	"github.com/weftraft/weft/internal/wire"
)

// about is the subject of a line of the log, beside its text; zero fields do not
// matter.
type about struct {
	peer    uint64 // that is known
	class   wire.Class
	refusal refusalReason
}

// logKind is a kind of lines.
type logKind struct {
	text string
	about
}

// log tells the operator of events possible many times a second: a stranger that dials,
// or a peer that comes and goes, as fast as possible.
func (t *TCP) log(level slog.Level, of about, text string, args ...any) {
	for i, arg := range args { // slog's JSON would take an address apart, and have a class as a number
		if s, ok := arg.(fmt.Stringer); ok {
			args[i] = s.String()
		}
	}
	t.lines.Log(t.cfg.Logger, level, logKind{text, of}, text, args...)
}
