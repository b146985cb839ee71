// Copyright 2026 The Weft Authors
// SPDX-License-Identifier: Apache-2.0

package names

import (
	"cmp"
	"fmt"
	"maps"
	"slices"

	pb "go.etcd.io/raft/v3/raftpb"

	"github.com/weftraft/weft/internal/wire"
)

// Taker is the follower's part.
type Taker struct {
	// Self is the follower.
	Self uint64
	// Patience is for how many ticks a message waits for its data, and Hedge for how many ticks a relay may be
	// silent before the leader is asked.
	Patience, Hedge uint64

	// Counts has what was done so far.
	Counts TakerCounts

	waits map[key]*wait // one for each message that waits
}

// TakerCounts count since the start of a Taker.
type TakerCounts struct {
	Joined    uint64 // messages, at once
	Wants     uint64 // relays asked
	Lacks     uint64 // leader asked
	Overdue   uint64 // of these, after a relay was asked
	Late      uint64 // joined with the leader's data or a relay's
	GivenUp   uint64 // messages lost: the data was gone, did not come in time, or did not fit
	FillsLate uint64 // for messages that wait no more
}

// key names a message: a term has one leader, which leads it in one life, so numbers do not repeat in a term.
type key struct{ term, number uint64 }

// wait is a message that lacks data.
type wait struct {
	leader uint64
	relay  uint64 // that was asked, or 0
	asked  bool   // the leader was
	since  uint64 // tick of the last question, or of data from the relay for an earlier message
	names  []wire.Name
	run    wire.Run // in the place of names
	data   [][]byte // of each name; nil: lacking. Of each entry of a run, or none
	over   bool     // what lacks will not come
}

func (w *wait) lacks() bool {
	if w.run.Count > 0 {
		return w.data == nil
	}
	return slices.ContainsFunc(w.data, func(d []byte) bool { return d == nil })
}

func keyOf(n wire.Named) key { return key{n.GetTerm(), n.Number} }

// Arrive joins a message with kept data, which find returns; or returns the question to send, if any, and
// has the message wait: the caller asks Resolve. An error says that the message is faulty.
func (t *Taker) Arrive(from uint64, n wire.Named, find func(boot, sequence uint64) []byte, tick uint64) (joined wire.Raft, ok bool, ask *Ask, err error) {
	if err := t.check(n); err != nil {
		return wire.Raft{}, false, nil, err
	}
	w := &wait{leader: from, names: n.Names, since: tick, run: n.Run}
	want := wire.Want{Term: n.GetTerm(), Number: n.Number}
	if w.run.Count == 0 {
		w.data = make([][]byte, len(n.Names))
	}
	for i := range w.run.Count {
		w.relay = w.run.Relay
		want.Entries = append(want.Entries, wire.EntryAt{Index: n.GetIndex() + 1 + i, Term: n.GetTerm()})
	}
	for i, name := range n.Names {
		if e := n.Entries[name.Entry]; name.Relay != 0 {
			w.relay = name.Relay
			want.Entries = append(want.Entries, wire.EntryAt{Index: e.GetIndex(), Term: e.GetTerm()})
			continue
		}
		if kept := find(name.Boot, name.Sequence); fits(name, kept) {
			w.data[i] = kept
		} else {
			w.asked = true
		}
	}
	if !w.lacks() {
		t.Counts.Joined++
		return withData(n.Raft, n.Names, w.data), true, nil, nil
	}
	if t.waits[keyOf(n)] != nil {
		return wire.Raft{}, false, nil, nil // delivered twice
	}
	if t.waits == nil {
		t.waits = map[key]*wait{}
	}
	t.waits[keyOf(n)] = w
	if w.asked { // a batch of this node's own is gone: the leader gives all
		return wire.Raft{}, false, t.lack(w, keyOf(n)), nil
	}
	t.Counts.Wants++
	return wire.Raft{}, false, &Ask{w.relay, want}, nil
}

// lack asks the leader.
func (t *Taker) lack(w *wait, k key) *Ask {
	t.Counts.Lacks++
	w.asked = true
	return &Ask{w.leader, wire.Lack{Term: k.term, Number: k.number}}
}

// check looks for names that stand for no entry of the message. An entry with a name has no data,
// no two names stand for one entry, and a message names one relay.
func (t *Taker) check(n wire.Named) error {
	if n.GetType() != pb.MsgApp {
		return fmt.Errorf("%w: names in a %v, want a MsgApp", errBad, n.GetType())
	}
	if r := n.Run; r.Count > 0 {
		if len(n.Names)+len(n.Entries) > 0 || r.Relay == t.Self || n.GetIndex()+r.Count < n.GetIndex() {
			return fmt.Errorf("%w: node %d is to ask node %d for %d entries behind %d, and there are %d others; want none, and one other node",
				errBad, t.Self, r.Relay, r.Count, n.GetIndex(), len(n.Entries))
		}
		return nil
	}
	next, relay := uint64(0), uint64(0)
	for _, name := range n.Names {
		if name.Entry < next || name.Entry >= uint64(len(n.Entries)) {
			return fmt.Errorf("%w: a name for entry %d, want %d to %d", errBad, name.Entry, next, len(n.Entries)-1)
		}
		e, want := n.Entries[name.Entry], n.GetIndex()+1+name.Entry
		if len(e.GetData()) > 0 || e.GetType() != pb.EntryNormal {
			return fmt.Errorf("%w: a name for entry %d, which has %d bytes of data and type %v, want none and EntryNormal", errBad, name.Entry, len(e.GetData()), e.GetType())
		}
		if e.GetIndex() != want || want <= n.GetIndex() {
			return fmt.Errorf("%w: a name for entry %d, of index %d behind index %d", errBad, name.Entry, e.GetIndex(), n.GetIndex())
		}
		next = name.Entry + 1
		if name.Relay == 0 {
			continue
		}
		if name.Relay == t.Self || relay != 0 && name.Relay != relay {
			return fmt.Errorf("%w: node %d is to ask node %d for data, want one other node", errBad, t.Self, name.Relay)
		}
		relay = name.Relay
	}
	return nil
}

// Fill takes data that a message waits for.
func (t *Taker) Fill(from uint64, f wire.Fill, tick uint64) error {
	w := t.waits[key{f.Term, f.Number}]
	if w == nil || w.over || !w.lacks() || from != w.relay && (from != w.leader || !w.asked) {
		t.Counts.FillsLate++
		return nil
	}
	err := w.fill(from, f.Data)
	if err == nil && len(f.Data) > 0 && from == w.relay {
		t.heard(from, f, tick)
	}
	return err
}

// heard has later messages wait further for a relay that has given data: a relay answers in order. An earlier message
// does not wait further, because its question or answer may be lost.
func (t *Taker) heard(relay uint64, f wire.Fill, tick uint64) {
	for k, w := range t.waits {
		if w.relay == relay && k.term == f.Term && k.number >= f.Number {
			w.since = tick
		}
	}
}

// fill takes the data of all named entries from the leader, and from a relay that of the entries that it is
// named for. With none, or with faulty data, the source is given up.
func (w *wait) fill(from uint64, data [][]byte) error {
	if w.run.Count > 0 {
		return w.fillRun(from, data)
	}
	var places []int
	for i, name := range w.names {
		if from == w.leader || name.Relay == from {
			places = append(places, i)
		}
	}
	fits := func() error {
		if len(data) != len(places) {
			return fmt.Errorf("%w: the data of %d entries, want %d", errBad, len(data), len(places))
		}
		for i, at := range places {
			if !fits(w.names[at], data[i]) {
				return fmt.Errorf("%w: %d bytes do not fit the name of entry %d, which has %d", errBad, len(data[i]), w.names[at].Entry, w.names[at].Length)
			}
		}
		return nil
	}
	if err := fits(); err != nil {
		w.giveUp(from)
		if len(data) == 0 {
			return nil
		}
		return err
	}
	for i, at := range places {
		w.data[at] = data[i]
	}
	return nil
}

// fillRun takes the data of a run's entries.
func (w *wait) fillRun(from uint64, data [][]byte) error {
	if fitsRun(w.run, data) {
		w.data = data
		return nil
	}
	w.giveUp(from)
	if len(data) == 0 {
		return nil
	}
	return fmt.Errorf("%w: the data of %d entries does not fit the run of %d entries and %d bytes", errBad, len(data), w.run.Count, w.run.Length)
}

// giveUp says that a source has nothing for a message.
func (w *wait) giveUp(source uint64) {
	switch {
	case !w.lacks():
	case source == w.leader && (w.asked || w.relay == 0):
		w.over = true
	case source == w.relay:
		w.relay = 0
	}
}

// Overdue returns the questions to leaders about messages whose relay is silent, or has nothing.
func (t *Taker) Overdue(tick uint64) (asks []Ask) {
	for _, k := range slices.SortedFunc(maps.Keys(t.waits), func(a, b key) int {
		return cmp.Or(cmp.Compare(a.term, b.term), cmp.Compare(a.number, b.number))
	}) {
		w := t.waits[k]
		if w.asked || !w.lacks() || w.relay != 0 && tick < w.since+t.Hedge {
			continue
		}
		t.Counts.Overdue++
		w.since = tick
		asks = append(asks, *t.lack(w, k))
	}
	return asks
}

// Resolve returns the joined message of one that waits. waits reports that the message is to wait
// further; without joined, it is lost.
func (t *Taker) Resolve(n wire.Named, tick uint64) (joined wire.Raft, ok, waits bool) {
	w := t.waits[keyOf(n)]
	if w != nil && (!slices.Equal(w.names, n.Names) || w.run != n.Run) { // two messages of one number: no leader sends them
		t.Counts.GivenUp++
		return wire.Raft{}, false, false
	}
	if w != nil && w.lacks() && !w.over && tick < w.since+t.Patience {
		return wire.Raft{}, false, true
	}
	delete(t.waits, keyOf(n))
	if w == nil || w.lacks() {
		t.Counts.GivenUp++
		return wire.Raft{}, false, false
	}
	t.Counts.Late++
	if w.run.Count > 0 {
		return withRun(n.Raft, w.data), true, false
	}
	return withData(n.Raft, n.Names, w.data), true, false
}

// Forget forgets a message that cannot wait, because there is no room.
func (t *Taker) Forget(n wire.Named) {
	t.Counts.GivenUp++
	delete(t.waits, keyOf(n))
}

// Lost says that the connection to a peer broke: what it was asked for will not come.
func (t *Taker) Lost(peer uint64) {
	for _, w := range t.waits {
		w.giveUp(peer)
	}
}
