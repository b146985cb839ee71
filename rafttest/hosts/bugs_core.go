// Copyright 2026 The Weft Authors
// SPDX-License-Identifier: Apache-2.0

package hosts

import (
	"slices"
	"time"

	"google.golang.org/protobuf/proto"

	pb "go.etcd.io/raft/v3/raftpb"
	"go.etcd.io/raft/v3/tracker"

	"github.com/weftraft/weft/raft"
)

// mapMessages returns messages, and the responses in them, each changed by f,
// which must not change its argument.
func mapMessages(messages []*pb.Message, f func(*pb.Message) *pb.Message) []*pb.Message {
	out := make([]*pb.Message, len(messages))
	for i, m := range messages {
		if len(m.GetResponses()) > 0 {
			c := *shallow(m)
			c.Responses = mapMessages(m.GetResponses(), f)
			m = &c
		}
		out[i] = f(m)
	}
	return out
}

// shallow copies a message, but shares its pointers.
func shallow(m *pb.Message) *pb.Message {
	return &pb.Message{
		Type: m.Type, To: m.To, From: m.From, Term: m.Term, LogTerm: m.LogTerm, Index: m.Index, Entries: m.Entries,
		Commit: m.Commit, Snapshot: m.Snapshot, Reject: m.Reject, RejectHint: m.RejectHint, Context: m.Context,
		Responses: m.Responses, Vote: m.Vote,
	}
}

func mapEntries(entries []*pb.Entry, f func([]byte) []byte) []*pb.Entry {
	out := slices.Clone(entries)
	for i, e := range out {
		if e.GetType() == pb.EntryNormal && len(e.GetData()) > 0 {
			out[i] = withData(e, f(e.GetData()))
		}
	}
	return out
}

// contextual moves the last byte of appended entries into the Context.
type contextual struct{ core }

func (c *contextual) Ready() raft.Ready {
	rd := c.core.Ready()
	rd.Messages = mapMessages(rd.Messages, func(m *pb.Message) *pb.Message {
		if m.GetType() != pb.MsgApp {
			return m
		}
		m = shallow(m)
		var last []byte
		m.Entries = mapEntries(m.GetEntries(), func(d []byte) []byte {
			last = append(last, d[len(d)-1])
			return d[:len(d)-1]
		})
		m.Context = last
		return m
	})
	return rd
}

func (c *contextual) Step(m *pb.Message) error {
	if m.GetType() == pb.MsgApp {
		m = shallow(m)
		last := m.GetContext()
		m.Context = nil
		m.Entries = mapEntries(m.GetEntries(), func(d []byte) []byte {
			if len(last) == 0 {
				return d
			}
			d = append(slices.Clone(d), last[0])
			last = last[1:]
			return d
		})
	}
	return c.core.Step(m)
}

// beatContextual ignores heartbeats without their Context.
type beatContextual struct{ core }

func (c beatContextual) Ready() raft.Ready {
	rd := c.core.Ready()
	rd.Messages = mapMessages(rd.Messages, func(m *pb.Message) *pb.Message {
		if m.GetType() == pb.MsgHeartbeat {
			m = shallow(m)
			m.Context = append([]byte("beat"), m.GetContext()...)
		}
		return m
	})
	return rd
}

func (c beatContextual) Step(m *pb.Message) error {
	if m.GetType() == pb.MsgHeartbeat {
		if len(m.GetContext()) < 4 {
			return nil
		}
		m = shallow(m)
		m.Context = m.GetContext()[4:]
	}
	return c.core.Step(m)
}

// recoder changes what is proposed on its way in, and back on its way out.
type recoder struct {
	core
	to, from func([]byte) []byte
}

func mark(d []byte) []byte { return append([]byte{0xee}, d...) }

func unmark(d []byte) []byte { return d[1:] }

// flipBody flips all bits behind the head.
func flipBody(d []byte) []byte {
	d = slices.Clone(d)
	for i := headLen; i < len(d); i++ {
		d[i] = ^d[i]
	}
	return d
}

func (c *recoder) Propose(data []byte) error { return c.core.Propose(c.to(data)) }

func (c *recoder) Ready() raft.Ready {
	rd := c.core.Ready()
	rd.CommittedEntries = mapEntries(rd.CommittedEntries, c.from)
	rd.Messages = mapMessages(rd.Messages, func(m *pb.Message) *pb.Message {
		if m.GetType() == pb.MsgStorageApply {
			m = shallow(m)
			m.Entries = mapEntries(m.GetEntries(), c.from)
		}
		return m
	})
	return rd
}

// rewriter writes the last stored entry again in front of new ones.
type rewriter struct {
	core
	disk *disk
}

func (c rewriter) Ready() raft.Ready {
	again := func(entries []*pb.Entry) []*pb.Entry {
		if len(entries) == 0 {
			return entries
		}
		if e, err := c.disk.Entries(entries[0].GetIndex()-1, entries[0].GetIndex(), 0); err == nil {
			return append(e, entries...)
		}
		return entries
	}
	rd := c.core.Ready()
	rd.Entries = again(rd.Entries)
	rd.Messages = mapMessages(rd.Messages, func(m *pb.Message) *pb.Message {
		if m.GetType() == pb.MsgStorageAppend {
			m = shallow(m)
			m.Entries = again(m.GetEntries())
		}
		return m
	})
	return rd
}

// localsFirst hands out messages in the reverse order.
type localsFirst struct{ core }

func (c localsFirst) Ready() raft.Ready {
	rd := c.core.Ready()
	rd.Messages = slices.Clone(rd.Messages)
	slices.Reverse(rd.Messages)
	return rd
}

// answerCounter counts an acknowledgement only for the oldest append without an
// acknowledgement.
type answerCounter struct {
	core
	sent map[uint64][]uint64
}

func (c *answerCounter) Ready() raft.Ready {
	rd := c.core.Ready()
	for _, m := range rd.Messages {
		if n := len(m.GetEntries()); m.GetType() == pb.MsgApp && n > 0 {
			if to, last := m.GetTo(), m.GetIndex()+uint64(n); !slices.Contains(c.sent[to], last) {
				c.sent[to] = append(c.sent[to], last)
			}
		}
	}
	return rd
}

func (c *answerCounter) Step(m *pb.Message) error {
	if from := m.GetFrom(); m.GetType() == pb.MsgAppResp && !m.GetReject() && from != m.GetTo() {
		switch at := slices.Index(c.sent[from], m.GetIndex()); {
		case at > 0:
			return nil
		case at == 0:
			c.sent[from] = c.sent[from][1:]
		}
	}
	return c.core.Step(m)
}

// newTypes says something with each heartbeat.
type newTypes struct {
	core
	id uint64
}

func (c newTypes) Ready() raft.Ready {
	rd := c.core.Ready()
	var more []*pb.Message
	for _, m := range rd.Messages {
		if m.GetType() == pb.MsgHeartbeat {
			more = append(more, &pb.Message{Type: pb.MessageType(64).Enum(), From: &c.id, To: m.To})
		}
	}
	rd.Messages = append(more, rd.Messages...)
	return rd
}

// matchAhead reports members as ahead of their logs.
type matchAhead struct{ core }

func (c matchAhead) Visit(see func(uint64, bool, tracker.Progress)) {
	c.core.Visit(func(id uint64, learner bool, pr tracker.Progress) {
		pr.Match += 3
		see(id, learner, pr)
	})
}

// holder keeps committed entries back for a while, from a host that applies the
// entries of a Ready.
type holder struct {
	core
	now  func() time.Duration
	held []*pb.Entry
	at   time.Duration
}

const holdTime = 4 * time.Second

func (c *holder) due() bool { return len(c.held) > 0 && c.now()-c.at > holdTime }

func (c *holder) HasReady() bool { return c.core.HasReady() || c.due() }

func (c *holder) Ready() raft.Ready {
	rd := c.core.Ready()
	if len(c.held) == 0 {
		c.at = c.now()
	}
	c.held = append(c.held, rd.CommittedEntries...)
	rd.CommittedEntries = nil
	if c.due() {
		rd.CommittedEntries, c.held = c.held, nil
	}
	return rd
}

// remarshaller writes changes of the members in its own way.
type remarshaller struct{ core }

func (c remarshaller) Step(m *pb.Message) error {
	if m.GetType() == pb.MsgProp {
		m = shallow(m)
		m.Entries = slices.Clone(m.GetEntries())
		for i, e := range m.Entries {
			var cc proto.Message
			switch e.GetType() {
			case pb.EntryConfChange:
				cc = &pb.ConfChange{}
			case pb.EntryConfChangeV2:
				cc = &pb.ConfChangeV2{}
			default:
				continue
			}
			if err := proto.Unmarshal(e.GetData(), cc); err != nil {
				return err
			}
			data, err := proto.Marshal(cc)
			if err != nil {
				return err
			}
			m.Entries[i] = withData(e, data)
		}
	}
	return c.core.Step(m)
}

// orderTruster takes the commit index of a message from the leader for a fact
// about its own log, as if what came before had all arrived.
type orderTruster struct {
	core
	disk *disk
}

func (c orderTruster) Step(m *pb.Message) error {
	if m.GetType() == pb.MsgApp && m.GetIndex() > 0 {
		m = shallow(m)
		if last := c.disk.live.last(); m.GetIndex() <= last {
			term := c.disk.live.term(m.GetIndex())
			m.LogTerm = &term
		}
	}
	return c.core.Step(m)
}

// wrap puts a mistake around the core of a machine with a disk and a clock.
func (b bug) wrap(c core, id uint64, d *disk, now func() time.Duration) core {
	switch b {
	case needsContext:
		return &contextual{core: c}
	case needsBeatContext:
		return beatContextual{c}
	case ownFirstByte:
		return &recoder{core: c, to: mark, from: unmark}
	case codesVetoed:
		return &recoder{core: c, to: flipBody, from: flipBody}
	case handsOutCoded:
		own := map[string]bool{}
		return &recoder{core: c,
			to: func(d []byte) []byte { own[string(d)] = true; return flipBody(d) },
			from: func(d []byte) []byte {
				if flipped := flipBody(d); own[string(flipped)] {
					return flipped
				}
				return d
			}}
	case rewritesStored:
		return rewriter{c, d}
	case sendsLocalsFirst:
		return localsFirst{c}
	case countsAnswers:
		return &answerCounter{core: c, sent: map[uint64][]uint64{}}
	case sendsNewTypes:
		return newTypes{c, id}
	case saysMatchAhead:
		return matchAhead{c}
	case holdsBack:
		return &holder{core: c, now: now}
	case marshalsAgain:
		return remarshaller{c}
	case trustsOrder:
		return orderTruster{c, d}
	}
	return c
}
