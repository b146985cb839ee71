// Copyright 2026 The Weft Authors
// SPDX-License-Identifier: Apache-2.0

package names

import (
	"fmt"
	"slices"

	pb "go.etcd.io/raft/v3/raftpb"

	"github.com/weftraft/weft/internal/wire"
)

// Taker is the follower's part.
type Taker struct {
	// Patience is for how many ticks a message waits for its data.
	Patience uint64

	// Counts has what was done so far.
	Counts TakerCounts

	waits map[key]*wait // one for each message that waits
}

// TakerCounts count since the start of a Taker.
type TakerCounts struct {
	Joined    uint64 // messages, at once
	Lacks     uint64
	Late      uint64 // joined with the leader's data
	GivenUp   uint64 // messages lost: the data was gone, did not come in time, or did not fit
	FillsLate uint64 // for messages that wait no more
}

// key names a message. A node leads a term in one life, so its numbers do not repeat in a term.
type key struct{ peer, term, number uint64 }

// wait is a message that lacks data.
type wait struct {
	until uint64 // tick
	names []wire.Name
	data  [][]byte // has come
	over  bool     // will not come
}

func keyOf(from uint64, n wire.Named) key { return key{from, n.GetTerm(), n.Number} }

// Arrive joins a message with kept data, which find returns; or returns the Lack to send, if any, and
// has the message wait: the caller asks Resolve. An error says that the message is faulty.
func (t *Taker) Arrive(from uint64, n wire.Named, find func(boot, sequence uint64) []byte, tick uint64) (joined wire.Raft, ok bool, lack *wire.Lack, err error) {
	if err := check(n); err != nil {
		return wire.Raft{}, false, nil, err
	}
	data := make([][]byte, 0, len(n.Names))
	for _, name := range n.Names {
		kept := find(name.Boot, name.Sequence)
		if !fits(name, kept) {
			break
		}
		data = append(data, kept)
	}
	if len(data) == len(n.Names) {
		t.Counts.Joined++
		return withData(n.Raft, n.Names, data), true, nil, nil
	}
	k := keyOf(from, n)
	if t.waits[k] != nil {
		return wire.Raft{}, false, nil, nil // delivered twice
	}
	if t.waits == nil {
		t.waits = map[key]*wait{}
	}
	t.waits[k] = &wait{until: tick + t.Patience, names: n.Names}
	t.Counts.Lacks++
	return wire.Raft{}, false, &wire.Lack{Term: n.GetTerm(), Number: n.Number}, nil
}

// check looks for names that stand for no entry of the message. An entry with a name has no data,
// and no two names stand for one entry.
func check(n wire.Named) error {
	if n.GetType() != pb.MsgApp {
		return fmt.Errorf("%w: names in a %v, want a MsgApp", errBad, n.GetType())
	}
	next := uint64(0)
	for _, name := range n.Names {
		if name.Entry < next || name.Entry >= uint64(len(n.Entries)) {
			return fmt.Errorf("%w: a name for entry %d, want %d to %d", errBad, name.Entry, next, len(n.Entries)-1)
		}
		if e := n.Entries[name.Entry]; len(e.GetData()) > 0 || e.GetType() != pb.EntryNormal {
			return fmt.Errorf("%w: a name for entry %d, which has %d bytes of data and type %v, want none and EntryNormal", errBad, name.Entry, len(e.GetData()), e.GetType())
		}
		next = name.Entry + 1
	}
	return nil
}

// Fill takes the data that a message waits for.
func (t *Taker) Fill(from uint64, f wire.Fill) error {
	w := t.waits[key{from, f.Term, f.Number}]
	if w == nil || w.over || w.data != nil {
		t.Counts.FillsLate++
		return nil
	}
	w.over = true
	if len(f.Data) == 0 {
		return nil
	}
	if len(f.Data) != len(w.names) {
		return fmt.Errorf("%w: the data of %d entries, want %d", errBad, len(f.Data), len(w.names))
	}
	for i, name := range w.names {
		if !fits(name, f.Data[i]) {
			return fmt.Errorf("%w: %d bytes do not fit the name of entry %d, which has %d", errBad, len(f.Data[i]), name.Entry, name.Length)
		}
	}
	w.data, w.over = f.Data, false
	return nil
}

// Resolve returns the joined message of one that waits. waits reports that the message is to wait
// further; without joined, it is lost.
func (t *Taker) Resolve(from uint64, n wire.Named, tick uint64) (joined wire.Raft, ok, waits bool) {
	k := keyOf(from, n)
	w := t.waits[k]
	if w != nil && !slices.Equal(w.names, n.Names) { // two messages of one number: no leader sends them
		t.Counts.GivenUp++
		return wire.Raft{}, false, false
	}
	if w != nil && w.data == nil && !w.over && tick < w.until {
		return wire.Raft{}, false, true
	}
	delete(t.waits, k)
	if w == nil || w.data == nil {
		t.Counts.GivenUp++
		return wire.Raft{}, false, false
	}
	t.Counts.Late++
	return withData(n.Raft, n.Names, w.data), true, false
}

// Forget forgets a message that cannot wait, because there is no room.
func (t *Taker) Forget(from uint64, n wire.Named) {
	t.Counts.GivenUp++
	delete(t.waits, keyOf(from, n))
}

// Lost says that the connection to a peer broke: what it was asked for will not come.
func (t *Taker) Lost(peer uint64) {
	for k, w := range t.waits {
		w.over = w.over || k.peer == peer && w.data == nil
	}
}
