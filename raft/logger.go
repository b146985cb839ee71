// Copyright 2026 The Weft Authors
// SPDX-License-Identifier: Apache-2.0

package raft

import (
	"fmt"
	"log"
	"os"
	"sync/atomic"
)

// Logger takes the log lines of nodes, at six levels. Fatal ends the process and Panic
// panics: a node does not go on after either.
type Logger interface {
	Debug(v ...interface{})
	Debugf(format string, v ...interface{})

	Error(v ...interface{})
	Errorf(format string, v ...interface{})

	Info(v ...interface{})
	Infof(format string, v ...interface{})

	Warning(v ...interface{})
	Warningf(format string, v ...interface{})

	Fatal(v ...interface{})
	Fatalf(format string, v ...interface{})

	Panic(v ...interface{})
	Panicf(format string, v ...interface{})
}

// loggerBox lets an atomic pointer hold an interface.
type loggerBox struct{ Logger }

var (
	stderrLogger  = &loggerBox{&DefaultLogger{Logger: log.New(os.Stderr, "raft", log.LstdFlags)}}
	packageLogger atomic.Pointer[loggerBox]
)

// SetLogger makes l the logger of nodes whose Config has none.
func SetLogger(l Logger) { packageLogger.Store(&loggerBox{l}) }

// ResetDefaultLogger undoes SetLogger: the logger then writes to standard error.
func ResetDefaultLogger() { packageLogger.Store(stderrLogger) }

func getLogger() Logger {
	if b := packageLogger.Load(); b != nil {
		return b.Logger
	}
	return stderrLogger.Logger
}

// DefaultLogger writes a line per message to a logger of the standard library.
// Debug messages are left out until EnableDebug.
type DefaultLogger struct {
	*log.Logger
	debug bool
}

// EnableTimestamps puts date and time in front of each line.
func (l *DefaultLogger) EnableTimestamps() { l.SetFlags(l.Flags() | log.LstdFlags) }

// EnableDebug lets debug messages through.
func (l *DefaultLogger) EnableDebug() { l.debug = true }

// line writes a message of a level, as from the caller of the exported method.
func (l *DefaultLogger) line(level, message string) {
	_ = l.Output(3, level+": "+message) // a failing log has no place to report to
}

// Debug logs v if debug messages are enabled.
func (l *DefaultLogger) Debug(v ...interface{}) {
	if l.debug {
		l.line("DEBUG", fmt.Sprint(v...))
	}
}

// Debugf logs a formatted message if debug messages are enabled.
func (l *DefaultLogger) Debugf(format string, v ...interface{}) {
	if l.debug {
		l.line("DEBUG", fmt.Sprintf(format, v...))
	}
}

// Info logs v.
func (l *DefaultLogger) Info(v ...interface{}) { l.line("INFO", fmt.Sprint(v...)) }

// Infof logs a formatted message.
func (l *DefaultLogger) Infof(format string, v ...interface{}) {
	l.line("INFO", fmt.Sprintf(format, v...))
}

// Warning logs v.
func (l *DefaultLogger) Warning(v ...interface{}) { l.line("WARN", fmt.Sprint(v...)) }

// Warningf logs a formatted message.
func (l *DefaultLogger) Warningf(format string, v ...interface{}) {
	l.line("WARN", fmt.Sprintf(format, v...))
}

// Error logs v.
func (l *DefaultLogger) Error(v ...interface{}) { l.line("ERROR", fmt.Sprint(v...)) }

// Errorf logs a formatted message.
func (l *DefaultLogger) Errorf(format string, v ...interface{}) {
	l.line("ERROR", fmt.Sprintf(format, v...))
}

// Fatal logs v and ends the process with exit code 1.
func (l *DefaultLogger) Fatal(v ...interface{}) {
	l.line("FATAL", fmt.Sprint(v...))
	os.Exit(1)
}

// Fatalf logs a formatted message and ends the process with exit code 1.
func (l *DefaultLogger) Fatalf(format string, v ...interface{}) {
	l.line("FATAL", fmt.Sprintf(format, v...))
	os.Exit(1)
}

// Panic logs v and panics with it.
func (l *DefaultLogger) Panic(v ...interface{}) { l.Logger.Panic(v...) }

// Panicf logs a formatted message and panics with it.
func (l *DefaultLogger) Panicf(format string, v ...interface{}) { l.Logger.Panicf(format, v...) }
