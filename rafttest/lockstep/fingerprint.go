// Copyright 2026 The Weft Authors
// SPDX-License-Identifier: Apache-2.0

package lockstep

import (
	"encoding/binary"
	"math/bits"

	"go.etcd.io/raft/v3/quorum"
	pb "go.etcd.io/raft/v3/raftpb"
	"go.etcd.io/raft/v3/tracker"
	"google.golang.org/protobuf/reflect/protoreflect"

	"github.com/weftraft/weft/raft"
)

// fingerprint is a hash of a value in every detail visible to a host, including the presence of
// optional fields, and the difference between a nil slice and an empty slice. Two sides are equal
// if their fingerprints are equal, and a value that was handed out is unchanged if its fingerprint
// is unchanged. Only for different fingerprints are the values themselves rendered.
//
// proto.Equal and reflect.DeepEqual were tried first: together with Describe they cost ten times as
// much as the two libraries.
type fingerprint uint64

func (h *fingerprint) word(x uint64) {
	hi, lo := bits.Mul64(uint64(*h)^x^0x9e3779b97f4a7c15, 0xd6e8feb86659fd93)
	*h = fingerprint(hi ^ lo)
}

func (h *fingerprint) flag(b bool) {
	if b {
		h.word(1)
	} else {
		h.word(2)
	}
}

func (h *fingerprint) bytes(b []byte) {
	h.flag(b == nil)
	h.word(uint64(len(b)))
	for ; len(b) >= 8; b = b[8:] {
		h.word(binary.LittleEndian.Uint64(b))
	}
	for _, c := range b {
		h.word(uint64(c))
	}
}

// optional covers a scalar field of a proto2 message: absent is not zero.
func optional[T ~int32 | ~uint64](h *fingerprint, p *T) {
	h.flag(p == nil)
	if p != nil {
		h.word(uint64(*p))
	}
}

func (h *fingerprint) optionalBool(p *bool) {
	h.flag(p == nil)
	if p != nil {
		h.flag(*p)
	}
}

// unknown covers fields outside this version of the schema.
func (h *fingerprint) unknown(m interface{ ProtoReflect() protoreflect.Message }) {
	if u := m.ProtoReflect().GetUnknown(); len(u) > 0 {
		h.bytes(u)
	}
}

func (h *fingerprint) entry(e *pb.Entry) {
	h.flag(e == nil)
	if e == nil {
		return
	}
	optional(h, e.Type)
	optional(h, e.Term)
	optional(h, e.Index)
	h.bytes(e.Data)
	h.unknown(e)
}

func (h *fingerprint) entries(ents []*pb.Entry) {
	h.flag(ents == nil)
	h.word(uint64(len(ents)))
	for _, e := range ents {
		h.entry(e)
	}
}

func (h *fingerprint) ids(ids []uint64) {
	h.flag(ids == nil)
	h.word(uint64(len(ids)))
	for _, id := range ids {
		h.word(id)
	}
}

func (h *fingerprint) confState(cs *pb.ConfState) {
	h.flag(cs == nil)
	if cs == nil {
		return
	}
	h.ids(cs.Voters)
	h.ids(cs.Learners)
	h.ids(cs.VotersOutgoing)
	h.ids(cs.LearnersNext)
	h.optionalBool(cs.AutoLeave)
	h.unknown(cs)
}

func (h *fingerprint) snapshot(s *pb.Snapshot) {
	h.flag(s == nil)
	if s == nil {
		return
	}
	h.bytes(s.Data)
	h.unknown(s)
	meta := s.Metadata
	h.flag(meta == nil)
	if meta == nil {
		return
	}
	h.confState(meta.ConfState)
	optional(h, meta.Index)
	optional(h, meta.Term)
	h.unknown(meta)
}

func (h *fingerprint) hardState(hs *pb.HardState) {
	h.flag(hs == nil)
	if hs == nil {
		return
	}
	optional(h, hs.Term)
	optional(h, hs.Vote)
	optional(h, hs.Commit)
	h.unknown(hs)
}

func (h *fingerprint) message(m *pb.Message) {
	h.flag(m == nil)
	if m == nil {
		return
	}
	optional(h, m.Type)
	optional(h, m.To)
	optional(h, m.From)
	optional(h, m.Term)
	optional(h, m.LogTerm)
	optional(h, m.Index)
	h.entries(m.Entries)
	optional(h, m.Commit)
	optional(h, m.Vote)
	h.snapshot(m.Snapshot)
	h.optionalBool(m.Reject)
	optional(h, m.RejectHint)
	h.bytes(m.Context)
	h.messages(m.Responses)
	h.unknown(m)
}

func (h *fingerprint) messages(ms []*pb.Message) {
	h.flag(ms == nil)
	h.word(uint64(len(ms)))
	for _, m := range ms {
		h.message(m)
	}
}

func (h *fingerprint) ready(rd raft.Ready) {
	h.flag(rd.SoftState == nil)
	if ss := rd.SoftState; ss != nil {
		h.word(ss.Lead)
		h.word(uint64(ss.RaftState))
	}
	h.hardState(rd.HardState)
	h.flag(rd.ReadStates == nil)
	h.word(uint64(len(rd.ReadStates)))
	for _, rs := range rd.ReadStates {
		h.word(rs.Index)
		h.bytes(rs.RequestCtx)
	}
	h.entries(rd.Entries)
	h.snapshot(rd.Snapshot)
	h.entries(rd.CommittedEntries)
	h.messages(rd.Messages)
	h.flag(rd.MustSync)
}

// set covers a set of ids by a sum, which does not depend on the order.
func (h *fingerprint) set(ids map[uint64]struct{}) {
	h.flag(ids == nil)
	var sum uint64
	for id := range ids {
		var one fingerprint
		one.word(id)
		sum += uint64(one)
	}
	h.word(sum)
	h.word(uint64(len(ids)))
}

func (h *fingerprint) members(c *tracker.Config) {
	for _, voters := range [2]quorum.MajorityConfig(c.Voters) {
		h.set(voters)
	}
	h.flag(c.AutoLeave)
	h.set(c.Learners)
	h.set(c.LearnersNext)
}

// inflights covers the visible state of a window: the indexes in flight, and whether there is room.
// inflights empties the window.
func (h *fingerprint) inflights(in *tracker.Inflights, match, next uint64) {
	h.flag(in == nil)
	if in == nil {
		return
	}
	h.flag(in.Full())
	count := in.Count()
	h.word(uint64(count))
	for i := match; count > 0 && i < next; i++ {
		in.FreeLE(i)
		if left := in.Count(); left < count {
			h.word(i)
			h.word(uint64(left))
			h.flag(in.Full())
			count = left
		}
	}
}

func (h *fingerprint) progress(pr *tracker.Progress) {
	h.word(pr.Match)
	h.word(pr.Next)
	h.word(uint64(pr.State))
	h.word(pr.PendingSnapshot)
	h.flag(pr.RecentActive)
	h.flag(pr.MsgAppFlowPaused)
	h.flag(pr.IsLearner)
	h.flag(pr.IsPaused())
}

// status covers a Status or BasicStatus. status empties the windows of in-flight messages, which
// are the caller's copies.
func (h *fingerprint) status(s *raft.Status) {
	h.word(s.ID)
	h.hardState(s.HardState)
	h.word(s.Lead)
	h.word(uint64(s.RaftState))
	h.word(s.Applied)
	h.word(s.LeadTransferee)
	h.members(&s.Config)
	h.flag(s.Progress == nil)
	var sum uint64
	for id, pr := range s.Progress {
		var one fingerprint
		one.word(id)
		one.progress(&pr)
		one.inflights(pr.Inflights, pr.Match, pr.Next)
		sum += uint64(one)
	}
	h.word(sum)
	h.word(uint64(len(s.Progress)))
}
