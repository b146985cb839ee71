// Copyright 2026 The Weft Authors
// SPDX-License-Identifier: Apache-2.0

package hosts

import (
	"fmt"
	"strings"
)

// logger puts what a core says into the trace. Its panics end a run.
type logger struct{ m *machine }

func (l logger) say(v ...any)                     { l.sayf("%s", fmt.Sprint(v...)) }
func (l logger) sayf(format string, v ...any)     { l.m.w.say(l.m.id, "# "+format, v...) }
func (l logger) Debug(v ...any)                   { l.say(v...) }
func (l logger) Debugf(format string, v ...any)   { l.sayf(format, v...) }
func (l logger) Info(v ...any)                    { l.say(v...) }
func (l logger) Warning(v ...any)                 { l.say(v...) }
func (l logger) Warningf(format string, v ...any) { l.sayf(format, v...) }
func (l logger) Error(v ...any)                   { l.say(v...) }
func (l logger) Errorf(format string, v ...any)   { l.sayf(format, v...) }

// Infof also counts changes of the members that the core holds back: no status of a core
// without coding tells.
func (l logger) Infof(format string, v ...any) {
	if strings.Contains(format, "has configuration change %s wait") {
		l.m.w.reach.ChangesHeld++
	}
	l.sayf(format, v...)
}

func (l logger) Fatal(v ...any)                 { die("the core gives up: %s", fmt.Sprint(v...)) }
func (l logger) Fatalf(format string, v ...any) { die("the core gives up: "+format, v...) }
func (l logger) Panic(v ...any)                 { die("the core panics: %s", fmt.Sprint(v...)) }
func (l logger) Panicf(format string, v ...any) { die("the core panics: "+format, v...) }
