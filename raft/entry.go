// Copyright 2026 The Weft Authors
// SPDX-License-Identifier: Apache-2.0

package raft

import (
	"bytes"
	"fmt"

	pb "go.etcd.io/raft/v3/raftpb"

	"github.com/weftraft/weft/ecraft"
	"github.com/weftraft/weft/internal/encoded"
	"github.com/weftraft/weft/raft/internal/extend"
)

// atLeast reports whether a log ending in id is as up to date as a log ending in other
// (thesis 3.6.1).
func atLeast(id, other ecraft.ID) bool {
	return id.Term > other.Term || id.Term == other.Term && id.Index >= other.Index
}

func idOf(e *pb.Entry) ecraft.ID { return ecraft.ID{Term: e.GetTerm(), Index: e.GetIndex()} }

func snapshotID(s *pb.Snapshot) ecraft.ID {
	return ecraft.ID{Term: s.GetMetadata().GetTerm(), Index: s.GetMetadata().GetIndex()}
}

// IsEmptySnap reports whether sp is nil or covers no entry.
func IsEmptySnap(sp *pb.Snapshot) bool { return sp.GetMetadata().GetIndex() == 0 }

// Two measures of an entry, as types to prevent adding one to the other.
type (
	// entryEncodingSize is bytes as encoded, in messages and on disks.
	entryEncodingSize uint64
	// entryPayloadSize is bytes of Data: zero for a leader's first entry of its term,
	// so limits in this measure never refuse the first entry.
	entryPayloadSize uint64
)

func encodingSize(ents []*pb.Entry) entryEncodingSize {
	return entryEncodingSize(encoded.Size(ents...))
}

func payloadSize(ents []*pb.Entry) (size entryPayloadSize) {
	for _, e := range ents {
		size += entryPayloadSize(len(e.GetData()))
	}
	return size
}

// limitSize returns the longest prefix of at most limit encoded bytes, but at least one
// entry unless there is none.
func limitSize(ents []*pb.Entry, limit entryEncodingSize) []*pb.Entry {
	return extend.Limit(ents, uint64(limit))
}

// entryCopy is an entry with the targets of its optional fields, in one allocation.
type entryCopy struct {
	entry       pb.Entry
	term, index uint64
	typ         pb.EntryType
}

// copyEntry returns a copy of e, payload included, with the identity id: the
// leader's own, which no proposer can change any more.
func copyEntry(e *pb.Entry, id ecraft.ID) *pb.Entry {
	c := copyShell(e, id)
	c.Data = bytes.Clone(e.Data) // empty and absent are not the same on the wire
	return c
}

// copyShell returns a copy of e without its payload, with the identity id.
func copyShell(e *pb.Entry, id ecraft.ID) *pb.Entry {
	c := &entryCopy{term: id.Term, index: id.Index}
	if unknown := e.ProtoReflect().GetUnknown(); len(unknown) > 0 {
		c.entry.ProtoReflect().SetUnknown(append([]byte(nil), unknown...))
	}
	c.entry.Term, c.entry.Index = &c.term, &c.index
	if e.Type != nil {
		c.typ = e.GetType()
		c.entry.Type = &c.typ
	}
	return &c.entry
}

// checkEntries refuses entries impossible behind prev in the log of a leader of the
// given term: indexes must be consecutive, and terms must not fall.
func checkEntries(prev ecraft.ID, ents []*pb.Entry, leaderTerm uint64) error {
	for i, e := range ents {
		id := idOf(e)
		if e == nil || id.Index != prev.Index+1 || id.Term < prev.Term || id.Term > leaderTerm {
			return fmt.Errorf("%w: entry %d of %d is %v, behind %v, from a leader of term %d",
				ErrMalformedMessage, i+1, len(ents), id, prev, leaderTerm)
		}
		prev = id
	}
	return nil
}
