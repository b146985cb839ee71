// Copyright 2026 The Weft Authors
// SPDX-License-Identifier: Apache-2.0

package logs

import (
	"bytes"
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"log/slog"
	"strings"
	"testing"
	"time"

	"github.com/stretchr/testify/require"
)

func newLog(t *testing.T, format string) (*bytes.Buffer, *slog.Logger, *Level) {
	out := new(bytes.Buffer)
	log, level, err := New(out, format, "info")
	require.NoError(t, err)
	return out, log, level
}

// at logs a line as of a time.
func at(t *testing.T, log *slog.Logger, now time.Time, text string, args ...any) {
	line := slog.NewRecord(now, slog.LevelInfo, text, 0)
	line.Add(args...)
	require.NoError(t, log.Handler().Handle(context.Background(), line))
}

func TestLineOfJSONIsAnObjectWithItsFields(t *testing.T) {
	out, log, _ := newLog(t, JSON)
	log.With("part", "host").Error("an entry is bad", "index", 7, "took", 2*time.Second, "error", errors.New("cut short"))
	var line map[string]any
	require.NoError(t, json.Unmarshal(out.Bytes(), &line), out.String())
	_, err := time.Parse(time.RFC3339Nano, line["time"].(string))
	require.NoError(t, err)
	delete(line, "time")
	require.Equal(t, map[string]any{
		"level": "ERROR", "msg": "an entry is bad", "part": "host", "index": 7.0, "took": "2s", "error": "cut short",
	}, line)
}

func TestLineForPeopleHasTextAndFields(t *testing.T) {
	for _, format := range []string{Console, "text"} {
		out, log, _ := newLog(t, format)
		log.Warn("peer unreachable", "peer", 4)
		require.Regexp(t, `^\S+Z? WARN peer unreachable \{"peer": 4\}\n$`, out.String())
	}
}

// The level holds for loggers that were derived before it was changed.
func TestLevelChangesWhileTheLogIsInUse(t *testing.T) {
	out, log, level := newLog(t, Console)
	part := log.With("part", "host")
	for _, step := range []struct {
		level string
		seen  []string
	}{
		{"info", []string{"INFO", "WARN", "ERROR"}},
		{"debug", []string{"DEBUG", "INFO", "WARN", "ERROR"}},
		{"error", []string{"ERROR"}},
		{"warn", []string{"WARN", "ERROR"}},
	} {
		require.NoError(t, level.Set(step.level))
		require.Equal(t, step.level, level.String())
		out.Reset()
		part.Debug("a line")
		part.Info("a line")
		part.Warn("a line")
		part.Error("a line")
		var seen []string
		for line := range strings.Lines(out.String()) {
			seen = append(seen, strings.Fields(line)[1])
		}
		require.Equal(t, step.seen, seen)
	}
	require.EqualError(t, level.Set("fatal"), `"fatal", want debug, info, warn or error`)
	require.Equal(t, "warn", level.String(), "as before the mistake")
}

// A flood of one text leaves a few lines a second and their number; other texts are not touched.
func TestFloodIsSampledAndCounted(t *testing.T) {
	out, log, level := newLog(t, Console)
	begin := time.Unix(1000, 0)
	for i := range 10_000 {
		at(t, log, begin, "message refused", "number", i)
	}
	at(t, log, begin, "a disk is full")
	require.Equal(t, sampleFirst+(10_000-sampleFirst)/sampleEvery, strings.Count(out.String(), "message refused"))
	require.Equal(t, uint64(10_000-sampleFirst-(10_000-sampleFirst)/sampleEvery), level.LeftOut())
	require.Equal(t, 1, strings.Count(out.String(), "a disk is full"))

	out.Reset()
	at(t, log, begin.Add(tellEvery+time.Second), "message refused")
	require.Regexp(t, `WARN lines that repeat too often were left out of the log \{"left_out": \d+\}`, out.String())
	require.Equal(t, 1, strings.Count(out.String(), "message refused"), "a second that begins has room again")
	out.Reset()
	at(t, log, begin.Add(10*tellEvery), "message refused")
	require.NotContains(t, out.String(), "left_out", "told once")
}

// The lines about lines that were left out name each of these once, however the flood goes on.
func TestLinesLeftOutAreToldOnce(t *testing.T) {
	out, log, level := newLog(t, JSON)
	begin := time.Unix(1000, 0)
	for second := range 60 {
		for range 1000 {
			at(t, log, begin.Add(time.Duration(second)*time.Second), "message refused")
		}
	}
	at(t, log, begin.Add(time.Hour), "quiet again")
	var told, lines uint64
	for text := range strings.Lines(out.String()) {
		var line struct {
			LeftOut uint64 `json:"left_out"`
		}
		require.NoError(t, json.Unmarshal([]byte(text), &line))
		if line.LeftOut > 0 {
			told += line.LeftOut
			lines++
		}
	}
	require.Equal(t, level.LeftOut(), told)
	require.LessOrEqual(t, lines, uint64(60/int(tellEvery.Seconds())+2))
}

func TestMistakesNameTheirFlag(t *testing.T) {
	for flag, f := range map[string]func() error{
		`--log-format: "xml", want console or json`:                         func() error { _, _, err := New(new(bytes.Buffer), "xml", "info"); return err },
		`--log-level: "loud", want debug, info, warn or error`:              func() error { _, _, err := New(new(bytes.Buffer), JSON, "loud"); return err },
		fmt.Sprintf("--log-level: %q, want debug, info, warn or error", ""): func() error { _, _, err := New(new(bytes.Buffer), JSON, ""); return err },
	} {
		require.EqualError(t, f(), flag)
	}
}
