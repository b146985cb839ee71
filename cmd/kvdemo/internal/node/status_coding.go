// Copyright 2026 The Weft Authors
// SPDX-License-Identifier: Apache-2.0

package node

import (
	"time"

	"github.com/weftraft/weft/cmd/kvdemo/kvpb"
	"github.com/weftraft/weft/ecraft"
	"github.com/weftraft/weft/rawnode"
)

// coding describes coded replication of the group, or returns nil.
func (g *group) coding(s *rawnode.CodingState) *kvpb.StatusResponse_Coding {
	if s == nil {
		return nil
	}
	c := s.Counters
	return &kvpb.StatusResponse_Coding{
		Active: s.Active, Dense: s.Dense, Completed: s.Completed, MemoryBytes: uint64(s.Memory),
		EncodedEntries: c.Encoded, EncodedBytes: c.EncodedBytes, PushedBytes: c.PushedBytes, CompletedBytes: c.CompletedBytes,
		Delayed: c.Delayed, DelayUs: uint64(c.Delays / time.Microsecond),
		Recent: g.recentlyCoded(),
	}
}

// How far recentlyCoded looks back: entries that it shows, entries, and bytes
// that it reads.
const (
	recentShown = 4
	recentRead  = 32
	recentBytes = 16 << 20
)

// recentlyCoded returns the last coded entries of the log, newest first. What a
// node holds is a function of the log, so their headers tell it.
func (g *group) recentlyCoded() (recent []*kvpb.StatusResponse_CodedEntry) {
	index, err := g.log.LastIndex()
	if err != nil {
		return nil
	}
	bytes := 0
	for range recentRead {
		entries, err := g.log.Entries(index, index+1, 0) // one at least, whatever its size
		if err != nil || len(entries) != 1 {
			return recent // compacted meanwhile, or replaced
		}
		e := entries[0]
		if h := codedHeader(e.GetData()); h != nil {
			recent = append(recent, codedEntry(e.GetIndex(), e.GetTerm(), h))
		}
		if bytes += len(e.GetData()); len(recent) == recentShown || bytes > recentBytes || index == 0 {
			return recent
		}
		index--
	}
	return recent
}

// codedHeader returns the header in the data of an entry, nil unless the entry is coded.
func codedHeader(data []byte) *ecraft.Header {
	if !ecraft.IsEnvelope(data, 0) {
		return nil
	}
	h, _, err := ecraft.ParseHeader(data, 0)
	if err != nil || h.Kind != ecraft.Coded {
		return nil
	}
	return h
}

func codedEntry(index, term uint64, h *ecraft.Header) *kvpb.StatusResponse_CodedEntry {
	e := &kvpb.StatusResponse_CodedEntry{
		Index: index, Term: term, PayloadBytes: uint64(h.PayloadLen), Encoder: h.Encoder,
		RestoredBy: uint64(h.D), Units: make(map[uint64]uint64, len(h.Members)),
	}
	most := 1
	for slot, id := range h.Members {
		e.Units[id] = uint64(h.Units[slot])
		most = max(most, int(h.Units[slot]))
	}
	e.Level = uint64((h.D + most - 1) / most)
	return e
}
