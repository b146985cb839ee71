// Copyright 2026 The Weft Authors
// SPDX-License-Identifier: Apache-2.0

// Package logs makes the log of a node: slog in front, because the library logs by slog, and zap
// behind, for sampling and for a level that changes while the node runs.
package logs

import (
	"errors"
	"fmt"
	"io"
	"log/slog"
	"math"
	"sync"
	"sync/atomic"
	"time"

	"go.uber.org/zap"
	"go.uber.org/zap/exp/zapslog"
	"go.uber.org/zap/zapcore"
)

// Formats of a log.
const (
	Console = "console" // for people
	JSON    = "json"    // a line is an object with time, level, msg, and the line's own fields
	text    = "text"    // the name of Console in settings of earlier versions
)

// In each second, the first sampleFirst lines of one level and one text are written, and of the lines
// behind these one in sampleEvery. Fields do not count: a flood repeats a text, and numbers differ.
const (
	sampleFirst = 100
	sampleEvery = 100
)

// tellEvery is the least time between two lines about lines that were left out.
const tellEvery = 10 * time.Second

// Level is the level of a log, and may be changed by any goroutine. Its zero value is not of use.
type Level struct {
	zap     zap.AtomicLevel
	leftOut atomic.Uint64

	mu     sync.Mutex
	told   uint64 // of leftOut: the log has a line about these
	toldAt time.Time
}

// levels are all levels, under the names that users know.
var levels = map[string]zapcore.Level{
	"debug": zap.DebugLevel, "info": zap.InfoLevel, "warn": zap.WarnLevel, "error": zap.ErrorLevel,
}

// Set changes the level. An error leaves the level as it is.
func (l *Level) Set(level string) error {
	to, ok := levels[level]
	if !ok {
		return fmt.Errorf("%q, want debug, info, warn or error", level)
	}
	l.zap.SetLevel(to)
	return nil
}

// String returns the level: debug, info, warn or error.
func (l *Level) String() string { return l.zap.Level().String() }

// LeftOut returns the number of lines that sampling has left out.
func (l *Level) LeftOut() uint64 { return l.leftOut.Load() }

// New returns a log that writes to out. Format and level come from a user: the error names every mistake by
// its flag.
func New(out io.Writer, format, level string) (*slog.Logger, *Level, error) {
	l := &Level{zap: zap.NewAtomicLevel()}
	encoder, err := newEncoder(format)
	if set := l.Set(level); set != nil {
		err = errors.Join(err, fmt.Errorf("--log-level: %w", set))
	}
	if err != nil {
		return nil, nil, err
	}
	told := teller{zapcore.NewCore(encoder, zapcore.Lock(zapcore.AddSync(out)), l.zap), l}
	sampled := zapcore.NewSamplerWithOptions(told, time.Second, sampleFirst, sampleEvery, zapcore.SamplerHook(l.count))
	return slog.New(zapslog.NewHandler(sampled, zapslog.AddStacktraceAt(slog.Level(math.MaxInt)))), l, nil
}

func newEncoder(format string) (zapcore.Encoder, error) {
	config := zapcore.EncoderConfig{
		TimeKey: "time", LevelKey: "level", MessageKey: "msg", LineEnding: zapcore.DefaultLineEnding,
		EncodeTime: zapcore.RFC3339NanoTimeEncoder, EncodeLevel: zapcore.CapitalLevelEncoder,
		EncodeDuration: zapcore.StringDurationEncoder, ConsoleSeparator: " ",
	}
	switch format {
	case Console, text:
		return zapcore.NewConsoleEncoder(config), nil
	case JSON:
		return zapcore.NewJSONEncoder(config), nil
	}
	return nil, fmt.Errorf("--log-format: %q, want %s or %s", format, Console, JSON)
}

// count counts the lines that the sampler leaves out.
func (l *Level) count(_ zapcore.Entry, decision zapcore.SamplingDecision) {
	if decision&zapcore.LogDropped != 0 {
		l.leftOut.Add(1)
	}
}

// teller writes a line about lines that were left out, before the next line that is written.
type teller struct {
	zapcore.Core
	level *Level
}

// With implements zapcore.Core.
func (t teller) With(fields []zapcore.Field) zapcore.Core {
	return teller{t.Core.With(fields), t.level}
}

// Check implements zapcore.Core.
func (t teller) Check(line zapcore.Entry, checked *zapcore.CheckedEntry) *zapcore.CheckedEntry {
	if t.Enabled(line.Level) {
		return checked.AddCore(line, t)
	}
	return checked
}

// Write implements zapcore.Core.
func (t teller) Write(line zapcore.Entry, fields []zapcore.Field) error {
	var err error
	if n := t.level.untold(line.Time); n > 0 {
		err = t.Core.Write(zapcore.Entry{Level: zap.WarnLevel, Time: line.Time, Message: "lines that repeat too often were left out of the log"},
			[]zapcore.Field{zap.Uint64("left_out", n)})
	}
	return errors.Join(err, t.Core.Write(line, fields))
}

// untold returns how many lines have been left out since it last returned so, unless that was a moment ago.
func (l *Level) untold(now time.Time) uint64 {
	l.mu.Lock()
	defer l.mu.Unlock()
	all := l.LeftOut()
	if all == l.told || now.Sub(l.toldAt) < tellEvery {
		return 0
	}
	n := all - l.told
	l.told, l.toldAt = all, now
	return n
}
