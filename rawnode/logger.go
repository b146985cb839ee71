// Copyright 2026 The Weft Authors
// SPDX-License-Identifier: Apache-2.0

package rawnode

import (
	"context"
	"fmt"
	"log/slog"

	"github.com/weftraft/weft/raft"
)

// logKind is a kind of lines of a host.
type logKind struct {
	text string
	peer uint64 // the subject of the line, or 0
}

// log writes a line about an event that may repeat many times a second, for example nonsense from a
// peer, or a disk that fills up and drains by turns. Repetitions of a line are limited.
func (h *Host) log(level slog.Level, peer uint64, text string, args ...any) {
	args = append([]any{"node", h.cfg.Replica.ID, "group", h.cfg.Replica.Group}, args...)
	h.lines.Log(h.cfg.Logger, level, logKind{text, peer}, text, args...)
}

// slogLogger passes the lines of a core to a structured logger. Its Fatal methods panic, because a
// library does not end its process.
type slogLogger struct{ l *slog.Logger }

var _ raft.Logger = slogLogger{}

func (s slogLogger) log(level slog.Level, text func() string) {
	if ctx := context.Background(); s.l.Enabled(ctx, level) {
		s.l.Log(ctx, level, text())
	}
}

func (s slogLogger) print(level slog.Level, v []any) {
	s.log(level, func() string { return fmt.Sprint(v...) })
}

func (s slogLogger) printf(level slog.Level, f string, v []any) {
	s.log(level, func() string { return fmt.Sprintf(f, v...) })
}

func (s slogLogger) Debug(v ...any)              { s.print(slog.LevelDebug, v) }
func (s slogLogger) Debugf(f string, v ...any)   { s.printf(slog.LevelDebug, f, v) }
func (s slogLogger) Info(v ...any)               { s.print(slog.LevelInfo, v) }
func (s slogLogger) Infof(f string, v ...any)    { s.printf(slog.LevelInfo, f, v) }
func (s slogLogger) Warning(v ...any)            { s.print(slog.LevelWarn, v) }
func (s slogLogger) Warningf(f string, v ...any) { s.printf(slog.LevelWarn, f, v) }
func (s slogLogger) Error(v ...any)              { s.print(slog.LevelError, v) }
func (s slogLogger) Errorf(f string, v ...any)   { s.printf(slog.LevelError, f, v) }

func (s slogLogger) Fatal(v ...any) {
	s.print(slog.LevelError, v)
	panic(fmt.Sprint(v...))
}

func (s slogLogger) Fatalf(f string, v ...any) {
	s.printf(slog.LevelError, f, v)
	panic(fmt.Sprintf(f, v...))
}

func (s slogLogger) Panic(v ...any)            { s.Fatal(v...) }
func (s slogLogger) Panicf(f string, v ...any) { s.Fatalf(f, v...) }
