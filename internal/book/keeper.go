// Copyright 2026 The Weft Authors
// SPDX-License-Identifier: Apache-2.0

package book

import (
	"bytes"
	"context"
	"encoding/json"
	"fmt"
	"sync"
	"time"

	"github.com/weftraft/weft/internal/wire"
)

// NoteGroup is the group number of notes between nodes. No group of Raft has it.
const NoteGroup = 0

// Keeper keeps the books of all nodes equal, and tells the others where this node is.
//
// Facts reach the members of a group by the log. But a node needs addresses to follow the log: a
// node that joins knows one member, perhaps not the leader; and while a node was down, all
// others may have moved. So nodes also tell each other their books, directly. A node sends
// the book to each node whose book differs, as far as is known, and a node that gets a book
// answers: with the own book if that has more, else with its checksum. While all books are
// equal nothing is sent. A connection from either end is enough for a way to open from the
// other.
type Keeper struct {
	book    *Book
	node    Node
	address string // of this node
	tick    time.Duration
	wake    chan struct{} // has room for one

	mu    sync.Mutex
	known map[uint64]*acquaintance

	announcing bool // under mu
	background sync.WaitGroup
}

// Node is what a keeper needs of its node.
type Node interface {
	// Send sends messages to other nodes, and does not wait.
	Send(messages []wire.Message)
	// Groups returns the groups that have a leader and this node as a member.
	Groups() []uint64
	// Propose has a group take a command.
	Propose(ctx context.Context, group uint64, command []byte) error
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
	Facts *Facts `json:"facts,omitempty"` // all that it knows
	// Asks says that the sender is in no book, and wants the book of the receiver unless Sum is its sum.
	Asks bool `json:"asks,omitempty"`
}

// NewKeeper returns the keeper of a node's book.
func NewKeeper(b *Book, n Node, address string, tick time.Duration) *Keeper {
	return &Keeper{book: b, node: n, address: address, tick: tick, wake: make(chan struct{}, 1), known: map[uint64]*acquaintance{}}
}

// Interval is the time between two looks.
func (k *Keeper) Interval() time.Duration { return max(50*time.Millisecond, 2*k.tick) }

// Run looks until ctx ends, and has the node look each time.
func (k *Keeper) Run(ctx context.Context, look func()) {
	defer k.background.Wait()
	ticker := time.NewTicker(k.Interval())
	defer ticker.Stop()
	for {
		k.announce(ctx)
		look()
		k.exchange(time.Now())
		k.book.TrySave()
		select {
		case <-ticker.C:
		case <-k.wake:
		case <-ctx.Done():
			k.book.TrySave()
			return
		}
	}
}

// exchange sends the book to nodes with another book, and the answers that are due.
func (k *Keeper) exchange(now time.Time) {
	facts, sum := k.book.read()
	var messages []wire.Message
	k.mu.Lock()
	for id := range k.book.All() {
		if id == k.book.node {
			continue
		}
		a := k.known[id]
		if a == nil {
			a = &acquaintance{}
			k.known[id] = a
		}
		if n, due := a.due(sum, now, k.Interval()); due {
			if n.Facts = nil; a.sum != sum {
				n.Facts = &facts
			}
			if a.hints == 1 {
				k.book.dialAgain(id) // nobody has answered at the other address
			}
			a.hints = max(0, a.hints-1)
			if m, ok := k.book.message(id, n); ok {
				messages = append(messages, m)
			}
		}
	}
	k.mu.Unlock()
	if len(messages) > 0 {
		k.node.Send(messages)
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

func (b *Book) message(to uint64, n note) (wire.Message, bool) {
	data, err := json.Marshal(n)
	if err != nil {
		b.logger.Error("encode a note", "error", err)
		return wire.Message{}, false
	}
	return wire.Message{Group: NoteGroup, From: b.node, To: to, Body: wire.Note{Data: data}}, true
}

// Receive implements rawnode.Receiver, for notes.
func (k *Keeper) Receive(m wire.Message) {
	body, ok := m.Body.(wire.Note)
	if !ok {
		return
	}
	n, err := readNote(body.Data)
	if err != nil {
		k.book.warn("a note of another node is left out", "from", m.From, "error", err)
		return
	}
	if n.Asks {
		k.answer(m.From, n.Sum)
		return
	}
	if k.book.Address(m.From) == "" {
		// A gateway: the transport refuses every other process that is in no book.
		k.book.warn("a note of a process that is no node is left out", "from", m.From)
		return
	}
	hinted := false
	if n.Facts != nil {
		k.book.Learn(*n.Facts)
		hinted = k.book.hint(m.From, n.Facts.Addresses[m.From].Address)
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
	k.Nudge()
}

// answer tells a process that is in no book what is in this one.
func (k *Keeper) answer(to, has uint64) {
	facts, sum := k.book.read()
	if sum == has {
		return
	}
	if m, ok := k.book.message(to, note{Sum: sum, Facts: &facts}); ok {
		k.node.Send([]wire.Message{m})
	}
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
func (k *Keeper) Unreachable(uint64) {}

// Nudge has the keeper look now.
func (k *Keeper) Nudge() {
	select {
	case k.wake <- struct{}{}:
	default:
	}
}

// announce tells a group where this node is, unless a group has that in its log.
func (k *Keeper) announce(ctx context.Context) {
	fact, logged := k.book.assert(k.address)
	if logged {
		return
	}
	groups := k.node.Groups()
	if len(groups) == 0 {
		return
	}
	k.mu.Lock()
	defer k.mu.Unlock()
	if k.announcing {
		return
	}
	k.announcing = true
	k.background.Go(func() {
		ctx, cancel := context.WithTimeout(ctx, announceTimeout)
		defer cancel()
		command, err := Facts{Addresses: map[uint64]Located{k.book.node: fact}}.Command()
		if err == nil {
			err = k.node.Propose(ctx, groups[0], command)
		}
		if err == nil {
			k.book.setLogged(fact.Version)
		} else if ctx.Err() == nil {
			k.book.warn("the address of this node is not replicated yet", "address", k.address, "error", err)
		}
		k.mu.Lock()
		defer k.mu.Unlock()
		k.announcing = false
	})
}

const announceTimeout = 10 * time.Second
