// Copyright 2026 The Weft Authors
// SPDX-License-Identifier: Apache-2.0

package replica

import (
	"cmp"
	"fmt"
	"slices"
	"time"

	"github.com/weftraft/weft/internal/wire"
)

// Between core and network stand two stages: resolve, in front of the core, and send,
// behind it. By themselves the stages let everything pass, and count. A Resolver or a
// Bundler lets messages travel in another form than the core's, for example without
// payloads already at the receiver.
//
// Both stages are plain values inside the replica, so that simulators run both, too.

// Resolver completes or replaces messages of peers before the core sees them. A Resolver
// does not wait: the replica asks again for a message that is not resolved yet.
type Resolver interface {
	// Resolve looks at the message that is next from a peer in its class.
	Resolve(m wire.Message, now time.Duration) (wire.Message, Resolution)
}

// Resolution is what a Resolver says of a message.
type Resolution uint8

// The resolutions.
const (
	// asResolved: the message that was returned is for the core.
	asResolved Resolution = iota
	// asUnresolved: the message waits, and so do later messages of its peer and class.
	// Config.MaxUnresolvedBytes bounds the waiting bytes.
	asUnresolved
	// asDropped: the message is lost. If this node leads, its core hears that the peer was not
	// reached.
	asDropped
)

// Bundler sees the messages of a turn before they leave.
type Bundler interface {
	// Bundle returns the messages to send in place of the turn's, in order, and the messages
	// given up. Bundle keeps no message for later.
	Bundle(turn []wire.Message, now time.Duration) (send, dropped []wire.Message)
}

// StageStats count what a stage has done since its start.
type StageStats struct {
	Items   uint64
	Bytes   uint64
	Refused uint64        // items for which there was no room
	Busy    time.Duration // at work
	Queued  time.Duration // sum over items: from arrival to the start of work
	Length  int           // items not done now
	Waiting int           // their bytes
}

// lane holds the waiting messages of one peer in one class, in order.
type lane struct {
	peer  uint64
	class wire.Class
	queue []unresolved
}

type unresolved struct {
	msg   wire.Message
	size  int
	since time.Duration
}

// resolveStage keeps the order of each lane.
//
// Invariant: stats.Waiting is the size of all that waits, and at most limit, or one message waits: a message that is larger
// would be lost each time that its leader sends it.
type resolveStage struct {
	resolver Resolver
	limit    int
	lanes    []*lane // by peer and class; none is empty
	stats    StageStats
}

// offer takes a message, and returns the message to pass on, or an error if the message has
// no room. now is the time, watch measures work and may be nil.
func (s *resolveStage) offer(m wire.Message, now time.Duration, watch func() time.Duration) (_ wire.Message, resolved Resolution, err error) {
	size := MemoryOf(m)
	if s.resolver == nil {
		s.stats.Items++
		s.stats.Bytes += uint64(size)
		return m, asResolved, nil
	}
	i, behind := s.find(m.From, m.Class())
	if !behind {
		if m, resolved = s.ask(m, size, now, watch); resolved != asUnresolved {
			return m, resolved, nil
		}
	}
	if s.stats.Length > 0 && s.stats.Waiting+size > s.limit {
		s.stats.Refused++
		return m, asDropped, fmt.Errorf("%w: %d bytes of messages are unresolved, the bound is %d", ErrOverloaded, s.stats.Waiting, s.limit)
	}
	if !behind {
		s.lanes = slices.Insert(s.lanes, i, &lane{peer: m.From, class: m.Class()})
	}
	s.lanes[i].queue = append(s.lanes[i].queue, unresolved{m, size, now})
	s.stats.Waiting += size
	s.stats.Length++
	return m, asUnresolved, nil
}

func (s *resolveStage) find(peer uint64, class wire.Class) (int, bool) {
	return slices.BinarySearchFunc(s.lanes, &lane{peer: peer, class: class}, func(a, b *lane) int {
		return cmp.Or(cmp.Compare(a.peer, b.peer), cmp.Compare(a.class, b.class))
	})
}

func (s *resolveStage) ask(m wire.Message, size int, now time.Duration, watch func() time.Duration) (wire.Message, Resolution) {
	var start time.Duration
	if watch != nil {
		start = watch()
	}
	got, resolved := s.resolver.Resolve(m, now)
	if watch != nil {
		s.stats.Busy += watch() - start
	}
	if resolved != asUnresolved {
		s.stats.Items++
		s.stats.Bytes += uint64(size)
	}
	return got, resolved
}

// again asks for the waiting messages, and gives each decided message to each.
func (s *resolveStage) again(now time.Duration, watch func() time.Duration, each func(wire.Message, Resolution)) {
	for _, l := range s.lanes {
		for len(l.queue) > 0 {
			u := l.queue[0]
			m, resolved := s.ask(u.msg, u.size, now, watch)
			if resolved == asUnresolved {
				break
			}
			l.queue[0], l.queue = unresolved{}, l.queue[1:] // the array would keep the message
			s.stats.Waiting -= u.size
			s.stats.Length--
			s.stats.Queued += now - u.since
			each(m, resolved)
		}
	}
	s.lanes = slices.DeleteFunc(s.lanes, func(l *lane) bool { return len(l.queue) == 0 })
}

// sendStage is the other stage: it lets a turn's messages leave, up to a bound.
type sendStage struct {
	bundler Bundler
	limit   int
	stats   StageStats
}

// turn returns the messages of a turn to send, and the dropped messages.
func (s *sendStage) turn(messages []wire.Message, now time.Duration, watch func() time.Duration) (send, dropped []wire.Message) {
	if s.bundler != nil && len(messages) > 0 {
		var start time.Duration
		if watch != nil {
			start = watch()
		}
		messages, dropped = s.bundler.Bundle(messages, now)
		if watch != nil {
			s.stats.Busy += watch() - start
		}
	}
	total := 0
	for i, m := range messages {
		size := MemoryOf(m)
		if total+size > s.limit && total > 0 && m.Class() != wire.ClassControl {
			return s.overLimit(messages, i, total, dropped)
		}
		total += size
		s.stats.Bytes += uint64(size)
	}
	s.stats.Items += uint64(len(messages))
	return messages, dropped
}

// overLimit drops the large ones of the messages from the i-th on.
func (s *sendStage) overLimit(messages []wire.Message, i, total int, dropped []wire.Message) (_, _ []wire.Message) {
	send := messages[:i:i]
	for _, m := range messages[i:] {
		size := MemoryOf(m)
		if total+size > s.limit && m.Class() != wire.ClassControl {
			s.stats.Refused++
			dropped = append(dropped, m)
			continue
		}
		total += size
		s.stats.Bytes += uint64(size)
		send = append(send, m)
	}
	s.stats.Items += uint64(len(send))
	return send, dropped
}

// MemoryOf is about what a message takes in memory, and no less than its encoded size. For most messages it is cheaper
// to tell than that, and may be many times that: a small entry is an object of more than
// a hundred bytes.
func MemoryOf(m wire.Message) int {
	const head, entry, name, slice, response = 384, 128, 48, 24, 128
	switch b := m.Body.(type) {
	case wire.Raft:
		n := head + len(b.Context) + entry*len(b.Entries) + len(b.ProtoReflect().GetUnknown())
		for _, e := range b.Entries {
			n += len(e.GetData()) + len(e.ProtoReflect().GetUnknown())
		}
		if b.Snapshot == nil && len(b.Responses) == 0 {
			return n
		}
		size := m.Size()
		if n += size; len(b.Responses) > 0 { // of no correct member, and each byte may be an object
			n += response * size
		}
		return n
	case wire.Proposal:
		return head + len(b.Data)
	case wire.Named: // with the data that the message waits for
		n := MemoryOf(wire.Message{Body: b.Raft}) + int(b.Run.Length) + entry*int(b.Run.Count) + name*len(b.Names)
		for _, name := range b.Names {
			n += int(name.Length)
		}
		return n
	case wire.Fill:
		n := head
		for _, data := range b.Data {
			n += slice + len(data)
		}
		return n
	}
	return max(head, m.Size())
}
