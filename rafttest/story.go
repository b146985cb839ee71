// Copyright 2026 The Weft Authors
// SPDX-License-Identifier: Apache-2.0

package rafttest

import (
	"fmt"
	"io"
	"strconv"
	"time"

	pb "go.etcd.io/raft/v3/raftpb"

	"github.com/weftraft/weft/raft"
)

// storyTail is the number of lines that are kept for the report of a failure.
const storyTail = 60

// story is the events of a run, one line an event. The lines are always made
// and hashed, so that two runs of a seed can be compared; lines are written
// only for a listener, and the last lines are kept.
type story struct {
	hash  uint64
	lines uint64
	out   io.Writer // nil: nobody listens
	tail  [storyTail][]byte
	line  []byte // being made
}

const (
	fnvOffset = 14695981039346656037
	fnvPrime  = 1099511628211
)

// mix adds bytes to an FNV-1a hash.
func mix(h uint64, b []byte) uint64 {
	for _, c := range b {
		h = (h ^ uint64(c)) * fnvPrime
	}
	return h
}

// mixInt adds a number to a hash.
func mixInt(h, v uint64) uint64 {
	for range 8 {
		h = (h ^ v&0xff) * fnvPrime
		v >>= 8
	}
	return h
}

// tick notes an event that is too common, and tells too little, for a line.
func (s *story) tick(at time.Duration, node uint64) {
	s.hash = mixInt(mixInt(s.hash, uint64(at)), node)
}

func (s *story) begin(at time.Duration, node uint64) {
	const width = 9
	var buf [24]byte
	ms := strconv.AppendFloat(buf[:0], float64(at)/float64(time.Millisecond), 'f', 3, 64)
	s.line = s.line[:0]
	for range width - len(ms) {
		s.line = append(s.line, ' ')
	}
	s.line = append(append(s.line, ms...), ' ')
	if node == 0 {
		s.line = append(s.line, "--  "...)
		return
	}
	s.line = append(s.line, 'n', byte('0'+node), ' ', ' ')
}

func (s *story) end() {
	s.line = append(s.line, '\n')
	s.hash = mix(s.hash, s.line)
	slot := &s.tail[s.lines%storyTail]
	*slot = append((*slot)[:0], s.line...)
	s.lines++
	s.write(s.line)
}

// aside writes a line outside the story: a node's log line.
func (s *story) aside(at time.Duration, node uint64, format string, args ...any) {
	if s.out == nil {
		return
	}
	s.begin(at, node)
	s.line = append(s.line, "    # "...)
	s.line = append(fmt.Appendf(s.line, format, args...), '\n')
	s.write(s.line)
}

func (s *story) write(line []byte) {
	if s.out == nil {
		return
	}
	if _, err := s.out.Write(line); err != nil {
		s.out = nil // the reader went away; the run goes on
	}
}

// tell adds a line about a node, or about the world (node 0).
func (s *story) tell(at time.Duration, node uint64, format string, args ...any) {
	s.begin(at, node)
	s.line = fmt.Appendf(s.line, format, args...)
	s.end()
}

// tellMessage adds a line about a message that reached a node, or did not.
func (s *story) tellMessage(at time.Duration, node uint64, verb string, m *pb.Message) {
	s.begin(at, node)
	s.line = append(s.line, verb...)
	s.line = appendMessage(s.line, m)
	s.end()
}

// appendMessage appends the fields of a message that are set, in a few
// characters each.
func appendMessage(b []byte, m *pb.Message) []byte {
	number := func(before string, n uint64) { b = strconv.AppendUint(append(b, before...), n, 10) }
	number(" ", m.GetFrom())
	number(">", m.GetTo())
	b = append(append(b, ' '), typeName(m.GetType())...)
	number(" t", m.GetTerm())
	if m.Index != nil || m.LogTerm != nil {
		number(" at ", m.GetIndex())
		number("/", m.GetLogTerm())
	}
	if n := len(m.GetEntries()); n > 0 {
		number(" +", uint64(n))
	}
	if m.GetCommit() != 0 {
		number(" c", m.GetCommit())
	}
	if m.GetReject() {
		b = fmt.Appendf(b, " reject hint %d", m.GetRejectHint())
	}
	if s := m.GetSnapshot(); s != nil {
		b = fmt.Appendf(b, " snap %d/%d", s.GetMetadata().GetIndex(), s.GetMetadata().GetTerm())
	}
	if m.GetType() == raft.MsgLeases {
		b = appendLeases(b, m.GetContext())
	}
	return b
}

// typeName returns the name of a message type without its beginning.
func typeName(t pb.MessageType) string {
	switch t {
	case raft.MsgUnits:
		return "Units"
	case raft.MsgUnitsAsk:
		return "UnitsAsk"
	case raft.MsgLeases:
		return "Leases"
	}
	return t.String()[3:]
}

// recent returns the last lines.
func (s *story) recent() string {
	var b []byte
	n := min(s.lines, storyTail)
	for i := s.lines - n; i < s.lines; i++ {
		b = append(b, s.tail[i%storyTail]...)
	}
	return string(b)
}
