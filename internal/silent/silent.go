// Copyright 2026 The Weft Authors
// SPDX-License-Identifier: Apache-2.0

// Package silent has a logger for cores whose lines are not read.
package silent

import "fmt"

// Logger is a raft.Logger of both libraries. It drops every line, and panics where a core asks for a panic, because an
// invariant is broken.
type Logger struct{}

// Debug implements raft.Logger.
func (Logger) Debug(...any) {}

// Debugf implements raft.Logger.
func (Logger) Debugf(string, ...any) {}

// Info implements raft.Logger.
func (Logger) Info(...any) {}

// Infof implements raft.Logger.
func (Logger) Infof(string, ...any) {}

// Warning implements raft.Logger.
func (Logger) Warning(...any) {}

// Warningf implements raft.Logger.
func (Logger) Warningf(string, ...any) {}

// Error implements raft.Logger.
func (Logger) Error(...any) {}

// Errorf implements raft.Logger.
func (Logger) Errorf(string, ...any) {}

// Fatal implements raft.Logger.
func (Logger) Fatal(v ...any) { panic(fmt.Sprint(v...)) }

// Fatalf implements raft.Logger.
func (Logger) Fatalf(f string, v ...any) { panic(fmt.Sprintf(f, v...)) }

// Panic implements raft.Logger.
func (Logger) Panic(v ...any) { panic(fmt.Sprint(v...)) }

// Panicf implements raft.Logger.
func (Logger) Panicf(f string, v ...any) { panic(fmt.Sprintf(f, v...)) }
