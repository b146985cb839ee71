// Copyright 2026 The Weft Authors
// SPDX-License-Identifier: Apache-2.0

package weft

import (
	"bytes"
	"context"
	"encoding/json"
	"fmt"
	"hash/crc64"
	"slices"
	"sync"
	"time"

	"github.com/weftraft/weft/internal/wire"
	"github.com/weftraft/weft/raft"
)

// noteGroup is the group number of notes between nodes. No group of Raft has it.
const noteGroup = 0

// keeper keeps the books of all nodes equal, and tells the others where this node is.
//
// Facts reach the members of a group by the log. But a node needs addresses to follow the log: a
// node that joins knows one member, perhaps not the leader; and while a node was down, all
// others may have moved. So nodes also tell each other their books, directly. A node sends
// the book to each node whose book differs, as far as is known, and a node that gets a book
// answers: with the own book if that has more, else with its checksum. While all books are
// equal nothing is sent. A connection from either end is enough for a way to open from the
// other.
type keeper struct {
	node *Node
	wake chan struct{} // has room for one

	mu    sync.Mutex
	known map[uint64]*acquaintance

	announcing bool // under mu
}

// acquaintance is what is known of another node's book.
type acquaintance struct {
	sum    uint64 // of the book there; 0: not known
	owed   bool   // an answer
	told   uint64 // sum of the book that was sent last
	hints  int    // how often the book is sent to the address that the node itself has named
	sentAt time.Time
	pause  time.Duration // until the same is sent again
}

// hintedNotes is how many notes go to an address that a node itself has named, and the book does
// not have.
const hintedNotes = 5

const maxNotePause = 16 * time.Second

// note is what nodes tell each other.
type note struct {
	Sum   uint64 `json:"sum"`             // of the sender's book
	Facts *facts `json:"facts,omitempty"` // all that it knows
}

func newKeeper(n *Node) *keeper {
	return &keeper{node: n, wake: make(chan struct{}, 1), known: map[uint64]*acquaintance{}}
}

// interval is the time between two looks.
func (k *keeper) interval() time.Duration {
	return max(50*time.Millisecond, 2*k.node.options.TickInterval)
}

// run looks until the node is closed.
func (k *keeper) run() {
	ticker := time.NewTicker(k.interval())
	defer ticker.Stop()
	for {
		k.announce()
		k.lookForLeavers()
		k.lookForOwnRemoval()
		k.compare()
		k.exchange(time.Now())
		k.node.book.trySave()
		select {
		case <-ticker.C:
		case <-k.wake:
		case <-k.node.context.Done():
			k.node.book.trySave()
			return
		}
	}
}

// exchange sends the book to nodes with another book, and the answers that are due.
func (k *keeper) exchange(now time.Time) {
	facts, sum := k.node.book.read()
	var messages []wire.Message
	k.mu.Lock()
	for id := range k.node.book.all() {
		if id == k.node.options.ID {
			continue
		}
		a := k.known[id]
		if a == nil {
			a = &acquaintance{}
			k.known[id] = a
		}
		if n, due := a.due(sum, now, k.interval()); due {
			if n.Facts = nil; a.sum != sum {
				n.Facts = &facts
			}
			if a.hints == 1 {
				k.node.book.dialAgain(id) // nobody has answered at the other address
			}
			a.hints = max(0, a.hints-1)
			if m, ok := k.message(id, n); ok {
				messages = append(messages, m)
			}
		}
	}
	k.mu.Unlock()
	if len(messages) > 0 {
		k.node.transport.Send(messages)
	}
}

// due reports whether something is to be sent, and notes that it is.
func (a *acquaintance) due(sum uint64, now time.Time, interval time.Duration) (note, bool) {
	switch {
	case a.sum == sum && !a.owed:
		return note{}, false
	case a.told != sum || a.owed:
		if now.Sub(a.sentAt) < interval {
			return note{}, false
		}
		a.pause = interval
	case now.Sub(a.sentAt) < a.pause:
		return note{}, false
	default:
		a.pause = min(2*a.pause, maxNotePause)
	}
	a.owed, a.told, a.sentAt = false, sum, now
	return note{Sum: sum}, true
}

func (k *keeper) message(to uint64, n note) (wire.Message, bool) {
	data, err := json.Marshal(n)
	if err != nil {
		k.node.options.Logger.Error("encode a note", "error", err)
		return wire.Message{}, false
	}
	return wire.Message{Group: noteGroup, From: k.node.options.ID, To: to, Body: wire.Note{Data: data}}, true
}

// Receive implements rawnode.Receiver, for notes.
func (k *keeper) Receive(m wire.Message) {
	body, ok := m.Body.(wire.Note)
	if !ok {
		return
	}
	n, err := readNote(body.Data)
	if err != nil {
		k.node.options.Logger.Warn("a note of another node is left out", "node", k.node.options.ID, "from", m.From, "error", err)
		return
	}
	hinted := false
	if n.Facts != nil {
		k.node.book.learn(*n.Facts)
		hinted = k.node.book.hint(m.From, n.Facts.Addresses[m.From].Address)
	}
	k.mu.Lock()
	if a := k.known[m.From]; a == nil && hinted {
		k.known[m.From] = &acquaintance{sum: n.Sum, owed: true, hints: hintedNotes}
	} else if a != nil {
		a.sum, a.owed = n.Sum, n.Facts != nil
		if hinted {
			a.hints = hintedNotes
		}
	}
	k.mu.Unlock()
	k.nudge()
}

// readNote reads a note of another node.
func readNote(data []byte) (note, error) {
	var n note
	if len(data) > maxBookBytes {
		return n, fmt.Errorf("it has %d bytes, want at most %d", len(data), maxBookBytes)
	}
	if err := json.NewDecoder(bytes.NewReader(data)).Decode(&n); err != nil {
		return n, err
	}
	if n.Facts != nil {
		return n, n.Facts.check()
	}
	return n, nil
}

// Unreachable implements rawnode.Receiver.
func (k *keeper) Unreachable(uint64) {}

// nudge has the keeper look now.
func (k *keeper) nudge() {
	select {
	case k.wake <- struct{}{}:
	default:
	}
}

// announce tells a group where this node is, unless the group has that in its log.
func (k *keeper) announce() {
	o := &k.node.options
	fact, logged := k.node.book.assert(o.Advertise)
	if logged {
		return
	}
	g := k.announcer()
	if g == nil {
		return
	}
	k.mu.Lock()
	defer k.mu.Unlock()
	if k.announcing {
		return
	}
	k.announcing = true
	k.node.background.Go(func() {
		ctx, cancel := context.WithTimeout(k.node.context, announceTimeout)
		defer cancel()
		err := g.tell(ctx, facts{Addresses: map[uint64]located{o.ID: fact}})
		if err == nil {
			k.node.book.setLogged(fact.Version)
		} else if ctx.Err() == nil {
			o.Logger.Warn("the address of this node is not replicated yet", "node", o.ID, "address", o.Advertise, "error", err)
		}
		k.mu.Lock()
		defer k.mu.Unlock()
		k.announcing = false
	})
}

const announceTimeout = 10 * time.Second

// announcer returns a group that can take the address of this node, as a member.
func (k *keeper) announcer() *Group {
	for _, g := range k.node.opened() {
		if s := g.host.Status(); s.Lead != raft.None && isMember(s.Members, k.node.options.ID) {
			return g
		}
	}
	return nil
}

// lookForLeavers finds members whose removal is done, and tells the other nodes, because a
// removed node hears nothing of the group any more. A leader looks.
func (k *keeper) lookForLeavers() {
	for _, g := range k.node.opened() {
		leaving := k.node.book.leaving(g.id)
		if len(leaving) == 0 {
			continue
		}
		s := g.host.Status()
		leaving = slices.DeleteFunc(leaving, func(id uint64) bool { return isMember(s.Members, id) })
		if len(leaving) == 0 || s.Lead != s.ID {
			continue
		}
		// The order to remove a node comes behind the one to add it, and this read behind both:
		// so a node that is no member now is none any more.
		ctx, cancel := context.WithTimeout(k.node.context, k.interval())
		conf, err := g.present(ctx)
		cancel()
		if err != nil {
			continue
		}
		for _, id := range leaving {
			if !isMember(conf, id) {
				k.node.book.learn(facts{Removed: map[uint64]map[uint64]bool{g.id: {id: true}}})
			}
		}
	}
}

// lookForOwnRemoval has the groups that go on without this node refuse calls here.
func (k *keeper) lookForOwnRemoval() {
	for _, g := range k.node.opened() {
		if by, answer := k.node.book.lost(g.id); by != 0 && answer == claimNone && g.weighing.CompareAndSwap(false, true) {
			k.node.background.Go(func() {
				defer g.weighing.Store(false)
				g.weigh(by)
			})
		}
		g.lookForRemoval()
	}
}

// crc64Table is for sums of books, which need not withstand an attacker.
var crc64Table = crc64.MakeTable(crc64.ECMA)

// read returns a copy of the facts, and their sum, which is not 0.
func (b *book) read() (facts, uint64) {
	b.mu.Lock()
	defer b.mu.Unlock()
	if b.sum == 0 {
		text, err := json.Marshal(b.facts)
		if err != nil { // numbers and texts always can be encoded
			panic(fmt.Sprintf("weft: encode facts: %v", err))
		}
		b.sum = max(1, crc64.Checksum(text, crc64Table))
		b.copy = b.facts.clone()
	}
	return b.copy, b.sum
}
