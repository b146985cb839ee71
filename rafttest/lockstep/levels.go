// Copyright 2026 The Weft Authors
// SPDX-License-Identifier: Apache-2.0

package lockstep

import (
	"errors"
	"fmt"
	"strings"

	"github.com/weftraft/weft/internal/silent"
	"github.com/weftraft/weft/raft"
)

// Operators are called by the level of a log line. So the levels of both libraries are compared, and the
// words are not: a call warns on both sides or on neither, and the same for errors.

// loud has the last line of a call at each level that is compared.
type loud map[string]string

var loudLevels = [...]string{"warning: ", "error: "}

func (l loud) logger() raft.Logger {
	return silent.Logger{Say: func(level, format string, v ...any) {
		if level == loudLevels[0] || level == loudLevels[1] {
			l[level] = fmt.Sprintf(format, v...)
		}
	}}
}

// sameLevels compares the levels of the last call's lines; err is Weft's.
func (s *schedule) sameLevels(what string, err error) {
	a, b := s.loud[0], s.loud[1]
	if s.libs[0].name == s.libs[1].name {
		return // both have the last logger that was set
	}
	for _, level := range loudLevels {
		switch {
		case (a[level] == "") == (b[level] == ""):
		case errors.Is(err, raft.ErrProposalDropped): // Weft warns of the first proposal in an election timeout
		case strings.Contains(b[level], "before ApplyConfChange was called"): // a hint for hosts that upstream does not give
		case strings.HasSuffix(a[level], "campaign() should have been called"): // lost its vote between the two elections, and campaigns
		default:
			s.differ(what+": a log line at level "+level, a[level], b[level])
		}
	}
}
