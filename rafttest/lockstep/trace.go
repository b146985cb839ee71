// Copyright 2026 The Weft Authors
// SPDX-License-Identifier: Apache-2.0

package lockstep

import (
	"fmt"
	"slices"
	"strings"

	pb "go.etcd.io/raft/v3/raftpb"
)

// traceSize is how many of the last calls a difference shows.
const traceSize = 40

// trace keeps the last calls. Their lines are made only for output.
type trace struct {
	events [traceSize]event
	n      int
}

type event struct {
	call, member uint64
	what         string
	// At most one of these fields is set.
	m    *pb.Message
	args []any
}

func (t *trace) add(e event) {
	t.events[t.n%traceSize] = e
	t.n++
}

func (t *trace) lines(lib library) []string {
	var out []string
	for i := max(0, t.n-traceSize); i < t.n; i++ {
		e := t.events[i%traceSize]
		line := fmt.Sprintf("call %d: %x %s", e.call, e.member, e.what)
		if e.m != nil {
			line += " " + strings.ReplaceAll(lib.describeMessage(e.m, short), "\n", " / ")
		}
		for _, a := range e.args {
			line += " " + fmt.Sprint(a)
		}
		out = append(out, line)
	}
	return out
}

// short renders payloads by their length, for traces.
func short(b []byte) string { return fmt.Sprintf("(%d bytes)", len(b)) }

// note adds the next call to the trace.
func (s *schedule) note(m *member, what string, args ...any) {
	s.trace.add(event{call: s.call + 1, member: m.id, what: what, args: args})
}

func (s *schedule) noteMessage(m *member, what string, msg *pb.Message) {
	s.trace.add(event{call: s.call + 1, member: m.id, what: what, m: msg})
}

// statusParts splits a status text into parts whose order does not depend on the order of the
// members.
func statusParts(text string) []string {
	parts := strings.FieldsFunc(text, func(r rune) bool { return r == '{' || r == '}' })
	for i, p := range parts {
		parts[i] = strings.Trim(p, ",")
	}
	slices.Sort(parts)
	return parts
}
