// Copyright 2026 The Weft Authors
// SPDX-License-Identifier: Apache-2.0

package coding

import (
	"testing"

	"github.com/stretchr/testify/require"
	pb "go.etcd.io/raft/v3/raftpb"

	"github.com/weftraft/weft/ecraft"
	"github.com/weftraft/weft/gossip"
	"github.com/weftraft/weft/raft/internal/extend"
)

// readBy adds the learners 4 and 5.
func (f *fake) readBy() {
	f.members.Learners = map[uint64]struct{}{}
	for _, id := range []uint64{4, 5} {
		f.join(id, true)
		f.members.Learners[id] = struct{}{}
	}
}

// ofFour is an entry of node 2 for these members, in node 1's form.
func ofFour(payload []byte, members []uint64, units []uint8) (*pb.Entry, *ecraft.Codeword) {
	h := codedFor(payload)
	h.Layout = ecraft.NewLayout(3, len(members))
	h.Members, h.Units = members, units
	word := ecraft.NewCodeword(h, payload)
	e := named(ecraft.ID{Term: 1, Index: 1}, ecraft.Seal(nil, h, 1, 0, word, nil))
	e.Type = pb.EntryNormal.Enum()
	return e, word
}

func ofPurpose(sent []*pb.Message, purpose byte) (to []uint64) {
	for _, m := range sent {
		if m.GetType() == MsgUnits && m.GetContext()[0] == purpose {
			to = append(to, m.GetTo())
		}
	}
	return to
}

// TestLearnersAreSentHeadersOnly, at every level; what is small is plain, and so is all under Full.
func TestLearnersAreSentHeadersOnly(t *testing.T) {
	for name, c := range map[string]struct {
		policy ecraft.Policy
		size   int
		coded  bool
	}{
		"level 2":        {ecraft.Levelled{}, 800, true},
		"level 1":        {ecraft.Fixed(1), leastLevelOne, true},
		"level 1, small": {ecraft.Fixed(1), leastLevelOne / 2, false},
		"full":           {ecraft.Full{}, 4 * leastLevelOne, false},
	} {
		f := newFake(t, func(cfg *Config) { cfg.Policy = c.policy })
		f.readBy()
		f.leads()
		f.proposes(text(c.size))
		made, _ := f.Form(4, f.entries, noLimit>>1)
		require.Len(t, made, 1)
		require.Equal(t, c.coded, len(made[0].GetData()) < 100, "%s: a learner is sent %d bytes", name, len(made[0].GetData()))
		require.Equal(t, c.coded, f.isEnvelope(f.entries[0]), name)
	}
}

// TestLearnersUnitsDoNotCommit: a leader of an earlier version gave the learner 4 units, and the
// learner has acknowledged; for a commit they are as if nobody had them.
func TestLearnersUnitsDoNotCommit(t *testing.T) {
	f := newFake(t)
	f.readBy()
	f.follow(2)
	e, _ := ofFour(text(800), []uint64{1, 3, 4}, []uint8{1, 1, 1})
	f.takes(0, e)
	l := f.leads()
	for _, id := range []uint64{1, 3, 4} {
		f.members.Progress[id].Match = 1
	}
	require.False(t, l.holds(f.ledger.find(1), 1, f.node), "two units at voters, of which any two hold one")
	f.members.Progress[2].Match = 1
	require.True(t, l.holds(f.ledger.find(1), 1, f.node))
}

// TestVotersArePushedFirst, and a learner that cannot be reached leaves its part to the next.
func TestVotersArePushedFirst(t *testing.T) {
	payload := text(800)
	e, _ := ofFour(payload, []uint64{1, 3, 4, 5}, []uint8{1, 1, 0, 0})
	push := func(down uint64) []uint64 {
		f := newFake(t)
		f.readBy()
		f.follow(2)
		if down != 0 {
			f.Unreachable(down)
		}
		f.takes(0, e)
		return ofPurpose(f.sent, forPush)
	}
	usual := push(0)
	require.Len(t, usual, 2)
	require.Equal(t, uint64(3), usual[0], "the voter first")
	require.Equal(t, []uint64{3, 9 - usual[1]}, push(usual[1]), "4 and 5 are 9")
	require.Equal(t, []uint64{usual[1]}, push(3))
}

// reading returns node 1 as a learner of the voters 2, 3 and 6, like 4 and 5, with an entry of
// which the voters 3 and 6 hold a unit each.
func reading(t *testing.T) (f *fake, e *pb.Entry, units func(from uint64, purpose byte, slot int) *pb.Message) {
	f = newFake(t)
	f.readBy()
	f.join(6, false)
	f.members.Progress[1].IsLearner = true
	delete(f.members.Voters[0], 1)
	f.follow(2)
	e, word := ofFour(text(800), []uint64{3, 6, 1, 4, 5}, []uint8{1, 1, 0, 0, 0})
	return f, e, func(from uint64, purpose byte, slot int) *pb.Message {
		data := gossip.AppendUnits(nil, word.Strip(slot, 0, 1))
		return &pb.Message{Type: MsgUnits.Enum(), From: &from, To: new(uint64(1)), Context: []byte{purpose}, LogTerm: new(f.term),
			Entries: []*pb.Entry{named(idOf(e), data)}}
	}
}

// TestLearnerPassesOnWhatVotersPush, also if the push came before the entry: to the other learners,
// once, and without a word on what this node has durably.
func TestLearnerPassesOnWhatVotersPush(t *testing.T) {
	for _, early := range []bool{false, true} {
		f, e, units := reading(t)
		if f.acked = (ecraft.ID{Term: f.term, Index: 1}); !early {
			f.takes(0, e)
		}
		require.NoError(t, f.Step(units(3, forPush, 0)))
		require.NoError(t, f.Step(units(4, forPass, 1)))
		if early {
			require.Empty(t, f.Asked(), "the header says who reads")
			f.takes(0, e)
		}
		asked := f.Asked()
		if early {
			asked = nil
			for _, m := range f.sent {
				asked = append(asked, extend.Effect{Do: extend.Send, Msg: m})
			}
		}
		var to []uint64
		for _, x := range asked {
			require.Equal(t, extend.Send, x.Do, "nothing is vouched for")
			require.False(t, IsPush(x.Msg), "a push is an early note")
			require.Equal(t, []byte{forPass}, x.Msg.GetContext())
			require.Zero(t, x.Msg.GetIndex(), "no acknowledgement")
			require.Len(t, x.Msg.GetEntries(), 1)
			to = append(to, x.Msg.GetTo())
		}
		require.Equal(t, []uint64{4, 5}, to, "early %t", early)
		require.True(t, f.ledger.find(1).complete, "one unit pushed, one passed on")
	}
}

// TestEarlyPushesArePassedOnOneByOne: two voters push units of one entry before the entry comes. A message that had
// the entry twice would be refused.
func TestEarlyPushesArePassedOnOneByOne(t *testing.T) {
	f, e, units := reading(t)
	require.NoError(t, f.Step(units(3, forPush, 0)))
	require.NoError(t, f.Step(units(6, forPush, 1)))
	f.takes(0, e)
	f.perform()
	require.Equal(t, []uint64{4, 5, 4, 5}, ofPurpose(f.sent, forPass))
	for _, m := range f.sent {
		require.Len(t, m.GetEntries(), 1)
	}
	require.Empty(t, f.passes.early)
	require.Zero(t, f.passes.bytes)
}

// TestEarlyPushesHaveABound: a voter pushes units of entries that never come, of few bytes or of none.
func TestEarlyPushesHaveABound(t *testing.T) {
	f, _, units := reading(t)
	index := uint64(1 << 40)
	for _, data := range [][]byte{nil, {1, 0}, units(3, forPush, 0).Entries[0].Data} {
		for range 10 {
			m := units(3, forPush, 0)
			m.Entries = nil
			for range 2000 {
				index++
				m.Entries = append(m.Entries, named(ecraft.ID{Term: 1, Index: index}, data))
			}
			require.NoError(t, f.Step(m))
		}
	}
	kept := 0
	for _, a := range f.passes.early {
		kept += len(a.ents)
	}
	require.Positive(t, kept)
	require.LessOrEqual(t, kept, maxEarly/earlyEntry)
	require.LessOrEqual(t, f.passes.bytes, maxEarly)
}

// TestOnlyVotersPushesArePassedOn, and only of undamaged units of entries in which this node was
// assigned nothing.
func TestOnlyVotersPushesArePassedOn(t *testing.T) {
	f, e, units := reading(t)
	f.takes(0, e)
	require.NoError(t, f.Step(units(4, forPass, 0)))
	require.Error(t, f.Step(units(5, forPush, 1)), "a learner's push of a voter's unit")
	bad := units(6, forPush, 1)
	bad.Entries[0].Data[len(bad.Entries[0].Data)-1] ^= 1
	require.Error(t, f.Step(bad))
	f.perform()
	require.Empty(t, f.sent)

	f, _, units = reading(t)
	old, _ := ofFour(text(800), []uint64{3, 6, 1, 4, 5}, []uint8{1, 1, 1, 1, 1}) // by a leader of an earlier version
	f.takes(0, old)
	require.NoError(t, f.Step(units(3, forPush, 0)))
	f.perform()
	require.Empty(t, ofPurpose(f.sent, forPass))
}

// TestVotersTakeNothingThatLearnersPassOn.
func TestVotersTakeNothingThatLearnersPassOn(t *testing.T) {
	f, e, units := reading(t)
	f.members.Progress[1].IsLearner = false
	f.takes(0, e)
	require.NoError(t, f.Step(units(4, forPass, 0)))
	require.NoError(t, f.Step(units(4, forPass, 1)))
	require.False(t, f.ledger.find(1).complete)
	require.NoError(t, f.Step(units(3, forPush, 0)))
	f.perform()
	require.Empty(t, ofPurpose(f.sent, forPass))
}

// zoned returns node 1 as a voter beside the voters 2, 3 and 6 and the learners 4 and 5, with an entry of which the voters 1, 3 and 6
// hold a unit each. Nodes 1, 3 and 4 stand in one zone, the others in another.
func zoned(t *testing.T, own string) (f *fake, e *pb.Entry, units func(from uint64, purpose byte, slot int) *pb.Message) {
	zones := map[uint64]string{1: own, 3: "a", 4: "a", 2: "b", 5: "b", 6: "b"}
	f = newFake(t, func(cfg *Config) { cfg.Zone = func(id uint64) string { return zones[id] } })
	f.readBy()
	f.join(6, false)
	f.follow(2)
	h := codedFor(text(800))
	h.Layout = ecraft.Layout{D: 3, Slots: 5}
	h.Members, h.Units = []uint64{1, 3, 6, 4, 5}, []uint8{1, 1, 1, 0, 0}
	word := ecraft.NewCodeword(h, text(800))
	e = named(ecraft.ID{Term: 1, Index: 1}, ecraft.Seal(nil, h, 1, 0, word, nil))
	e.Type = pb.EntryNormal.Enum()
	return f, e, func(from uint64, purpose byte, slot int) *pb.Message {
		return &pb.Message{Type: MsgUnits.Enum(), From: &from, To: new(uint64(1)), Context: []byte{purpose}, LogTerm: new(f.term),
			Entries: []*pb.Entry{named(idOf(e), gossip.AppendUnits(nil, word.Strip(slot, 0, 1)))}}
	}
}

// TestVoterPassesOnWhatComesFromAnotherZone, also if the push came before the entry: to the voters and to one learner of its zone, and
// without a word on what this node has durably. What comes from its own zone goes no further.
func TestVoterPassesOnWhatComesFromAnotherZone(t *testing.T) {
	for _, early := range []bool{false, true} {
		f, e, units := zoned(t, "a")
		if f.acked = (ecraft.ID{Term: f.term, Index: 1}); !early {
			f.takes(0, e)
			f.sent = nil
		}
		require.NoError(t, f.Step(units(6, forPush, 2)))
		require.NoError(t, f.Step(units(3, forPush, 1)))
		if early {
			f.takes(0, e)
		}
		f.perform()
		require.Equal(t, []uint64{3, 4}, ofPurpose(f.sent, forZone), "early %t", early)
		require.Empty(t, ofPurpose(f.sent, forPass))
		for _, m := range f.sent {
			if m.GetContext()[0] == forZone {
				require.Zero(t, m.GetIndex(), "no acknowledgement")
				require.False(t, IsPush(m))
			}
		}
		require.True(t, f.ledger.find(1).complete)
	}
	f, e, units := zoned(t, "")
	f.takes(0, e)
	require.NoError(t, f.Step(units(6, forPush, 2)))
	f.perform()
	require.Empty(t, ofPurpose(f.sent, forZone), "no zone")
}

// TestUnitsPassedOnInAZoneEnd: a voter keeps them, a learner passes them on to the other learners of the zone and no further, and
// the winner of an election takes none.
func TestUnitsPassedOnInAZoneEnd(t *testing.T) {
	f, e, units := zoned(t, "a")
	f.takes(0, e)
	f.sent = nil
	require.NoError(t, f.Step(units(3, forPush, 1)))
	require.NoError(t, f.Step(units(3, forZone, 2)))
	f.perform()
	require.Empty(t, f.sent)
	require.True(t, f.ledger.find(1).complete)

	f, e, units = zoned(t, "a")
	f.takes(0, e)
	f.role = extend.Winner
	f.Turned(f.role, f.term, 0)
	f.perform()
	missing := f.payloads.missing(f.ledger.find(1))
	require.NoError(t, f.Step(units(3, forZone, 2)))
	require.Equal(t, missing, f.payloads.missing(f.ledger.find(1)), "it goes by answers")

	f, _, units = zoned(t, "b")
	f.members.Progress[1].IsLearner = true
	h := codedFor(text(800))
	h.Layout = ecraft.Layout{D: 3, Slots: 5}
	h.Members, h.Units = []uint64{3, 6, 1, 4, 5}, []uint8{2, 1, 0, 0, 0}
	word := ecraft.NewCodeword(h, text(800))
	e = named(ecraft.ID{Term: 1, Index: 1}, ecraft.Seal(nil, h, 1, 0, word, nil))
	e.Type = pb.EntryNormal.Enum()
	f.takes(0, e)
	from := units(6, forZone, 0)
	from.Entries[0].Data = gossip.AppendUnits(nil, word.Strip(0, 0, 1))
	require.NoError(t, f.Step(from))
	f.perform()
	require.Equal(t, []uint64{5}, ofPurpose(f.sent, forPass))
	require.Equal(t, 2, f.payloads.missing(f.ledger.find(1)))
}

// TestRidersAreForVoters: a late entry is raised at voters, and learners get no units with the carrier.
func TestRidersAreForVoters(t *testing.T) {
	f := newFake(t)
	f.readBy()
	l := f.leads()
	f.proposes(text(800))
	require.Equal(t, 1, l.raiser.raise(func(id uint64) bool { return id != 3 }))
	f.perform()
	env, err := f.open(f.entries[1])
	require.NoError(t, err)
	require.Equal(t, []uint8{2, 0, 0, 0}, env.Riders[0].Totals)
}
