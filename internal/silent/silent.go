// Copyright 2026 The Weft Authors
// SPDX-License-Identifier: Apache-2.0

// Package silent has a logger for cores whose lines are not read, or are read by a test.
package silent

import "fmt"

// Logger is a raft.Logger of both libraries. The zero value drops every line, and panics where a core asks for a panic,
// because an invariant is broken.
type Logger struct {
	// Say, if set, hears of each line, with a prefix that says its level.
	Say func(level, format string, v ...any)
	// Die, if set, is called in the place of the panic, and must not return.
	Die func(text string)
}

func (l Logger) say(level string, v ...any) {
	if l.Say != nil {
		l.Say(level, "%s", fmt.Sprint(v...))
	}
}

func (l Logger) sayf(level, format string, v ...any) {
	if l.Say != nil {
		l.Say(level, format, v...)
	}
}

func (l Logger) die(text string) {
	if l.Die != nil {
		l.Die(text)
	}
	panic(text)
}

// Debug implements raft.Logger.
func (l Logger) Debug(v ...any) { l.say("debug: ", v...) }

// Debugf implements raft.Logger.
func (l Logger) Debugf(format string, v ...any) { l.sayf("debug: ", format, v...) }

// Info implements raft.Logger.
func (l Logger) Info(v ...any) { l.say("", v...) }

// Infof implements raft.Logger.
func (l Logger) Infof(format string, v ...any) { l.sayf("", format, v...) }

// Warning implements raft.Logger.
func (l Logger) Warning(v ...any) { l.say("warning: ", v...) }

// Warningf implements raft.Logger.
func (l Logger) Warningf(format string, v ...any) { l.sayf("warning: ", format, v...) }

// Error implements raft.Logger.
func (l Logger) Error(v ...any) { l.say("error: ", v...) }

// Errorf implements raft.Logger.
func (l Logger) Errorf(format string, v ...any) { l.sayf("error: ", format, v...) }

// Fatal implements raft.Logger.
func (l Logger) Fatal(v ...any) { l.die(fmt.Sprint(v...)) }

// Fatalf implements raft.Logger.
func (l Logger) Fatalf(format string, v ...any) { l.die(fmt.Sprintf(format, v...)) }

// Panic implements raft.Logger.
func (l Logger) Panic(v ...any) { l.die(fmt.Sprint(v...)) }

// Panicf implements raft.Logger.
func (l Logger) Panicf(format string, v ...any) { l.die(fmt.Sprintf(format, v...)) }
