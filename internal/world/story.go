// Copyright 2026 The Weft Authors
// SPDX-License-Identifier: Apache-2.0

package world

import (
	"fmt"
	"io"
	"strconv"
	"time"
)

// storyTail is the number of lines that are kept for the report of a failure.
const storyTail = 100

// Story is the events of a run, one line an event. The lines are always made
// and hashed, so that two runs of a seed can be compared; lines are written
// only for a listener, and the last lines are kept.
type Story struct {
	// Hash is of all lines, and Lines their number.
	Hash, Lines uint64

	agenda *Agenda
	out    io.Writer // nil: nobody listens
	tail   [storyTail][]byte
	line   []byte // being made
}

// NewStory returns a story without lines. out may be nil.
func NewStory(agenda *Agenda, out io.Writer) Story {
	return Story{Hash: HashBegin, agenda: agenda, out: out}
}

// HashBegin is the hash of nothing.
const HashBegin = 14695981039346656037

const fnvPrime = 1099511628211

// Mix adds bytes to an FNV-1a hash.
func Mix(h uint64, b []byte) uint64 {
	for _, c := range b {
		h = (h ^ uint64(c)) * fnvPrime
	}
	return h
}

// MixInt adds a number to a hash.
func MixInt(h, v uint64) uint64 {
	for range 8 {
		h = (h ^ v&0xff) * fnvPrime
		v >>= 8
	}
	return h
}

// Tick notes an event that is too common, and tells too little, for a line.
func (s *Story) Tick(node uint64) {
	s.Hash = MixInt(MixInt(s.Hash, uint64(s.agenda.now)), node)
}

// Tell adds a line about a node, or about the world (node 0).
func (s *Story) Tell(node uint64, format string, args ...any) {
	s.begin(node)
	s.line = fmt.Appendf(s.line, format, args...)
	s.end()
}

// Write adds a line that text appends: for lines too common for package fmt.
func (s *Story) Write(node uint64, text func(line []byte) []byte) {
	s.begin(node)
	s.line = text(s.line)
	s.end()
}

// Aside writes a line outside the story: a node's log line.
func (s *Story) Aside(node uint64, format string, args ...any) {
	if s.out == nil {
		return
	}
	s.begin(node)
	s.line = append(s.line, "    # "...)
	s.line = append(fmt.Appendf(s.line, format, args...), '\n')
	s.write()
}

// Recent returns the last lines.
func (s *Story) Recent() string {
	var b []byte
	for i := s.Lines - min(s.Lines, storyTail); i < s.Lines; i++ {
		b = append(b, s.tail[i%storyTail]...)
	}
	return string(b)
}

func (s *Story) begin(node uint64) {
	const width = 9
	var buf [24]byte
	ms := appendMillis(buf[:0], s.agenda.now)
	s.line = s.line[:0]
	for range width - len(ms) {
		s.line = append(s.line, ' ')
	}
	s.line = append(append(s.line, ms...), ' ')
	if node == 0 {
		s.line = append(s.line, "--  "...)
		return
	}
	s.line = append(strconv.AppendUint(append(s.line, 'n'), node, 10), ' ', ' ')
}

// appendMillis appends a time in milliseconds, with three decimals: what strconv.AppendFloat
// does, for a third of its time. The float decides where the time lies half way.
func appendMillis(b []byte, t time.Duration) []byte {
	if t%time.Microsecond == time.Microsecond/2 {
		return strconv.AppendFloat(b, float64(t)/float64(time.Millisecond), 'f', 3, 64)
	}
	us := int64(t+time.Microsecond/2) / 1000
	b = append(strconv.AppendInt(b, us/1000, 10), '.')
	return append(b, byte('0'+us/100%10), byte('0'+us/10%10), byte('0'+us%10))
}

func (s *Story) end() {
	s.line = append(s.line, '\n')
	s.Hash = Mix(s.Hash, s.line)
	slot := &s.tail[s.Lines%storyTail]
	*slot = append((*slot)[:0], s.line...)
	s.Lines++
	s.write()
}

func (s *Story) write() {
	if s.out == nil {
		return
	}
	if _, err := s.out.Write(s.line); err != nil {
		s.out = nil // the reader went away; the run goes on
	}
}

// Violation is an invariant that does not hold, at an instant of virtual time.
type Violation struct {
	Invariant string // its name
	At        time.Duration
	Detail    string // the finding and the expectation
}

// Error implements error.
func (v *Violation) Error() string {
	return fmt.Sprintf("%s does not hold at %v: %s", v.Invariant, v.At, v.Detail)
}
