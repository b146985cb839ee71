// Copyright 2026 The Weft Authors
// SPDX-License-Identifier: Apache-2.0

package lockstep

import "fmt"

// silence is a logger without output, and panics where a logger must. Log lines are not compared,
// because the lines are for people, and differ.
type silence struct{}

func (silence) Debug(...any)            {}
func (silence) Debugf(string, ...any)   {}
func (silence) Error(...any)            {}
func (silence) Errorf(string, ...any)   {}
func (silence) Info(...any)             {}
func (silence) Infof(string, ...any)    {}
func (silence) Warning(...any)          {}
func (silence) Warningf(string, ...any) {}

func (silence) Fatal(v ...any)                 { panic(fmt.Sprint(v...)) }
func (silence) Fatalf(format string, v ...any) { panic(fmt.Sprintf(format, v...)) }
func (silence) Panic(v ...any)                 { panic(fmt.Sprint(v...)) }
func (silence) Panicf(format string, v ...any) { panic(fmt.Sprintf(format, v...)) }
