// Copyright 2026 The Weft Authors
// SPDX-License-Identifier: Apache-2.0

package raft_test

import (
	"bytes"
	"fmt"
	"testing"

	"github.com/stretchr/testify/require"
	pb "go.etcd.io/raft/v3/raftpb"

	"github.com/weftraft/weft/ecraft"
	"github.com/weftraft/weft/raft"
)

// codedLog returns the Storage of a member of a group that codes, with that clear
// prefix, and the index of the first envelope in it. All its entries are committed.
func codedLog(t *testing.T, prefix int, id uint64) (s *raft.MemoryStorage, first uint64) {
	g := newGroup(t, 3)
	g.prefix = prefix
	for id := range uint64(3) {
		g.start(id + 1)
	}
	g.elect(1)
	g.propose(1, payload(0, 10))
	g.propose(1, payload(1, 1000))
	g.propose(1, payload(2, 10))
	g.tick(2)
	require.Equal(t, 1, g.events[raft.CodingEncoded])
	return g.nodes[id].storage, g.nodes[id].index - 1
}

// TestNodeRefusesALogItCannotRead: a node without coding, or with another clear prefix,
// does not start on a log with envelopes, whether they are applied or not.
func TestNodeRefusesALogItCannotRead(t *testing.T) {
	for _, prefix := range []int{0, 4, 22} {
		for id := range uint64(3) { // the leader's form is not the followers'
			s, first := codedLog(t, prefix, id+1)
			for _, applied := range []uint64{0, first - 1, first, first + 1} {
				for _, own := range []*raft.Coding{nil, {ClearPrefix: 7}, {ClearPrefix: 4096}} {
					c := config(s)
					c.ID, c.Applied, c.Coding = id+1, applied, own
					_, err := raft.NewRawNode(c)
					require.ErrorIs(t, err, raft.ErrCodedEntries)
					require.ErrorContains(t, err, fmt.Sprintf("entry %d is an envelope with a clear prefix of %d bytes", first, prefix))
					require.ErrorContains(t, err, fmt.Sprintf("start with Coding and ClearPrefix %d", prefix))
					require.Panics(t, func() { raft.RestartNode(c) })
				}
				c := config(s)
				c.ID, c.Applied, c.Coding = id+1, applied, &raft.Coding{ClearPrefix: prefix}
				newNode(t, c)
			}
		}
	}
}

// TestNodeRefusesCarriersAndWrappedPayloads: these are envelopes, too.
func TestNodeRefusesCarriersAndWrappedPayloads(t *testing.T) {
	p := payload(1, 100)
	h := &ecraft.Header{Kind: ecraft.Whole, PayloadLen: len(p), PayloadCRC: ecraft.Checksum(p), Encoder: 1}
	whole := ecraft.Seal(nil, h, 1, 0, ecraft.NewCodeword(h, p), nil)
	carrier := ecraft.Seal(nil, &ecraft.Header{Kind: ecraft.Carrier, Encoder: 1}, 1, 0, nil, nil)
	for _, data := range [][]byte{whole, carrier} {
		s := logOf(t, []byte("plain"), data)
		_, err := raft.NewRawNode(config(s))
		require.ErrorIs(t, err, raft.ErrCodedEntries)
		require.ErrorContains(t, err, "entry 3 ")
	}
}

// logOf returns a Storage with these payloads in its log, from index 2 on.
func logOf(t *testing.T, payloads ...[]byte) *raft.MemoryStorage {
	s := newStorage(t, 1)
	for i, p := range payloads {
		require.NoError(t, s.Append([]*pb.Entry{{Term: new(uint64(1)), Index: new(uint64(i + 2)), Data: p}}))
	}
	require.NoError(t, s.SetHardState(&pb.HardState{Term: new(uint64(1)), Commit: new(uint64(len(payloads) + 1))}))
	return s
}

// TestPlainPayloadsMayLookLikeEnvelopes: what begins with the magic, or is an envelope
// with a damaged header, is the host's own; it is stored, sent and applied as upstream
// would.
func TestPlainPayloadsMayLookLikeEnvelopes(t *testing.T) {
	s, first := codedLog(t, 0, 2)
	ents, err := s.Entries(first, first+1, 0)
	require.NoError(t, err)
	damaged := bytes.Clone(ents[0].GetData())
	damaged[20] ^= 1
	for _, data := range [][]byte{damaged, damaged[:8], append(bytes.Clone(damaged[:8]), payload(1, 1000)...)} {
		require.True(t, ecraft.IsEnvelope(data, 0))
		s := logOf(t, data)
		rn := newNode(t, config(s))
		var applied [][]byte
		take := func() {
			for rn.HasReady() {
				rd := rn.Ready()
				require.NoError(t, s.Append(rd.Entries))
				for _, e := range rd.CommittedEntries {
					if len(e.GetData()) > 0 {
						applied = append(applied, e.GetData())
					}
				}
				rn.Advance(rd)
			}
		}
		require.NoError(t, rn.Campaign())
		take()
		require.NoError(t, rn.Propose(data))
		take()
		require.Equal(t, [][]byte{data, data}, applied)
	}
}

// TestNodeWithoutCodingTakesNoEnvelope: neither a client nor a leader brings one into
// the log of a node that would not start with it.
func TestNodeWithoutCodingTakesNoEnvelope(t *testing.T) {
	for _, prefix := range []int{0, 4} {
		from, first := codedLog(t, prefix, 2)
		ents, err := from.Entries(first, first+1, 0)
		require.NoError(t, err)
		envelope := ents[0].GetData()

		s := newStorage(t, 1)
		rn := newNode(t, config(s))
		lead(t, rn, s)
		last := rn.BasicStatus().GetCommit()
		err = rn.Propose(envelope)
		require.ErrorIs(t, err, raft.ErrProposalDropped)
		require.ErrorContains(t, err, "mark of coded entries")
		drain(t, rn, s)
		require.Equal(t, last, rn.BasicStatus().GetCommit())

		s = newStorage(t, 1, 2, 3)
		rn = newNode(t, config(s))
		m := &pb.Message{Type: pb.MsgApp.Enum(), From: new(uint64(2)), To: new(uint64(1)), Term: new(uint64(2)),
			LogTerm: new(uint64(1)), Index: new(uint64(1)), Entries: []*pb.Entry{
				{Term: new(uint64(2)), Index: new(uint64(2)), Data: []byte("plain")},
				{Term: new(uint64(2)), Index: new(uint64(3)), Data: envelope},
			}}
		err = rn.Step(m)
		require.ErrorIs(t, err, raft.ErrMalformedMessage)
		require.ErrorContains(t, err, "entry 3 is an envelope")
		for _, m := range drain(t, rn, s) {
			require.NotEqual(t, pb.MsgAppResp, m.GetType())
		}
		last, err = s.LastIndex()
		require.NoError(t, err)
		require.Equal(t, uint64(1), last)
	}
}

// TestForeignEnvelopesAreWrapped: a payload that is an envelope with another clear
// prefix than the group's goes into one of the group's.
func TestForeignEnvelopesAreWrapped(t *testing.T) {
	from, first := codedLog(t, 4, 2)
	ents, err := from.Entries(first, first+1, 0)
	require.NoError(t, err)
	want := ents[0].GetData()
	g := newGroup(t, 3)
	g.policy = func() ecraft.Policy { return ecraft.Full{} } // travels whole
	for id := range uint64(3) {
		g.start(id + 1)
	}
	g.elect(1)
	g.propose(1, payload(0, 10))
	g.propose(1, want)
	g.tick(2)
	g.requireApplied([][]byte{payload(0, 10), want}, 1, 2, 3)
	for id := range uint64(3) {
		g.start(id + 1)
	}
}

// countingStorage counts the bytes of entries that are read.
type countingStorage struct {
	*raft.MemoryStorage
	read int
	fail bool
}

func (s *countingStorage) Entries(lo, hi, maxSize uint64) ([]*pb.Entry, error) {
	if s.fail {
		return nil, errDisk
	}
	ents, err := s.MemoryStorage.Entries(lo, hi, maxSize)
	for _, e := range ents {
		s.read += len(e.GetData())
	}
	return ents, err
}

// TestLittleIsReadOfALongLog: of what is applied a node that starts reads a bounded
// part; of what it is to hand out, all. If the Storage gives nothing away, the node
// starts like upstream's, which does not ask.
func TestLittleIsReadOfALongLog(t *testing.T) {
	const size, count = 1 << 20, 40
	var payloads [][]byte
	for i := range count {
		payloads = append(payloads, payload(i, size))
	}
	s := &countingStorage{MemoryStorage: logOf(t, payloads...)}
	for _, coding := range []*raft.Coding{nil, {}} {
		for applied, most := range map[uint64]int{0: count * size, 1 + count: 17 * size, 1 + count - 5: 22 * size} {
			c := config(s)
			s.read, c.Applied, c.Coding = 0, applied, coding
			newNode(t, c)
			require.LessOrEqual(t, s.read, most, "applied %d, %v", applied, coding)
			require.Greater(t, s.read, most/2)
		}
	}
	s.fail = true
	newNode(t, config(s))
}
