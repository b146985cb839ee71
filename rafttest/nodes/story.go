// Copyright 2026 The Weft Authors
// SPDX-License-Identifier: Apache-2.0

package nodes

import (
	"fmt"
	"hash/fnv"
	"io"
	"time"
)

// storyTail is how many lines are kept for the report of a failure.
const storyTail = 80

// story is the events, a line each. All lines are hashed, so that two runs of a
// seed can be compared; lines are written only for a listener.
type story struct {
	hash  uint64
	lines uint64
	out   io.Writer
	tail  [storyTail]string
}

// tell adds a line about a node, or about the world (node 0).
func (s *story) tell(at time.Duration, node uint64, text string) {
	who := "--"
	if node != 0 {
		who = fmt.Sprintf("n%d", node)
	}
	line := fmt.Sprintf("%10.3f %s %s\n", float64(at)/float64(time.Millisecond), who, text)
	h := fnv.New64a()
	_, _ = fmt.Fprintf(h, "%x%s", s.hash, line) // a hash takes everything
	s.hash = h.Sum64()
	s.tail[s.lines%storyTail] = line
	s.lines++
	if s.out == nil {
		return
	}
	if _, err := io.WriteString(s.out, line); err != nil {
		s.out = nil // the reader went away; the run goes on
	}
}

// recent returns the last lines.
func (s *story) recent() (text string) {
	for i := s.lines - min(s.lines, storyTail); i < s.lines; i++ {
		text += s.tail[i%storyTail]
	}
	return text
}
