// Copyright 2026 The Weft Authors
// SPDX-License-Identifier: Apache-2.0

package rawnodetest

import (
	"bytes"
	"errors"
	"fmt"
	"io"
	"math/rand/v2"
	"sync"
	"testing"
	"time"

	pb "go.etcd.io/raft/v3/raftpb"

	"github.com/weftraft/weft/internal/wire"
	"github.com/weftraft/weft/rawnode"
)

// TransportFactory describes a transport to the suite.
type TransportFactory struct {
	// Open returns the transports of nodes 1 to n of a new network; each node knows the other n-1
	// nodes, and no further node. The suite closes each transport that is an io.Closer. Required.
	Open func(n int) ([]rawnode.Transport, error)
	// Patience bounds each wait of the suite; 0 means 1 minute. A correct transport takes a small
	// part of this time.
	Patience time.Duration
}

// Validate returns an error that names the missing field, or nil.
func (f TransportFactory) Validate() error {
	if f.Open == nil {
		return errors.New("rawnodetest: TransportFactory.Open is nil, want a function that opens transports which know each other")
	}
	return nil
}

// TestTransport checks a transport against the contract of [rawnode.Transport], with a subtest for
// each rule. With the race detector the suite finds more.
func TestTransport(t *testing.T, f TransportFactory) {
	t.Helper()
	testAll(t, f.Validate(), transportRules, f.stage)
}

// CheckTransport is TestTransport outside a test. The error joins a [RuleError] for each broken
// rule.
func CheckTransport(f TransportFactory) error {
	return checkAll(f.Validate(), transportRules, f.stage)
}

func (f TransportFactory) stage(rule string) *wiring {
	if f.Patience == 0 {
		f.Patience = patience
	}
	return &wiring{f: f, rng: draws(rule)}
}

// transportRules are the promises of a transport.
var transportRules = []rule[*wiring]{
	{"messages arrive as they were sent", wired(2, ruleArrive)},
	{"messages of a class keep their order, and come once", wired(2, ruleOrder)},
	{"messages go to their node and group alone", wired(3, ruleAddress)},
	{"a receiver that waits holds up neither Send nor control messages", wired(2, ruleSlow)},
	{"what is dropped is reported", wired(2, ruleReported)},
	{"SendWait waits for room, and loses nothing", wired(2, ruleSendWait)},
	{"SendWait ends with its context", wired(2, ruleContext)},
	{"a node that is not known is reported", wired(2, ruleStranger)},
	{"a group has one receiver at a time", wired(2, ruleJoin)},
	{"nothing comes after Leave", wired(2, ruleLeave)},
	{"a group that is not joined holds up no other", wired(2, ruleAbsent)},
	{"many may send at the same time", wired(3, ruleMany)},
	{"a node that has closed is reported", wired(2, ruleClosed)},
}

// wiring is the state of a test of a rule.
type wiring struct {
	f     TransportFactory
	rng   *rand.Rand
	ends  []rawnode.Transport
	boxes []*box
}

// wired runs a check on n nodes, and closes them afterwards.
func wired(n int, check func(*wiring)) func(*wiring) {
	return func(w *wiring) {
		err := guarded(func() {
			w.open(n)
			check(w)
		})
		for _, b := range w.boxes {
			b.let()
		}
		for _, t := range w.ends {
			if c, ok := t.(io.Closer); ok {
				err = errors.Join(err, guarded(func() { within(w.f.Patience, "Close", func() { _ = c.Close() }) }))
			}
		}
		must(err)
	}
}

// open opens n nodes and joins a group at each.
func (w *wiring) open(n int) {
	ends, err := w.f.Open(n)
	w.ends = append(w.ends, ends...)
	calls("function Open", err)
	if len(ends) != n {
		breaks("function Open returns %d transports, want %d", len(ends), n)
	}
	for i := range ends {
		w.join(i, theGroup)
	}
}

func (w *wiring) join(i int, group uint64) *box {
	b := &box{w: w, lost: map[uint64]int{}, held: make(chan struct{}), changed: make(chan struct{}, 1)}
	close(b.held)
	w.boxes = append(w.boxes, b)
	calls("method Join", w.ends[i].Join(group, b))
	return b
}

// send sends messages from the first node.
func (w *wiring) send(messages ...rawnode.Message) { w.ends[0].Send(messages) }

// box is a receiver that keeps its messages.
type box struct {
	w       *wiring
	mu      sync.Mutex
	got     []rawnode.Message
	lost    map[uint64]int
	held    chan struct{} // while open, all messages except control messages wait
	changed chan struct{}
}

// Receive implements [rawnode.Receiver].
func (b *box) Receive(m rawnode.Message) {
	var held chan struct{}
	b.look(func() { held = b.held })
	if m.Class() != wire.ClassControl {
		<-held
	}
	b.look(func() { b.got = append(b.got, m) })
	b.change()
}

// Unreachable implements [rawnode.Receiver].
func (b *box) Unreachable(peer uint64) {
	b.look(func() { b.lost[peer]++ })
	b.change()
}

func (b *box) change() {
	select {
	case b.changed <- struct{}{}:
	default:
	}
}

// hold makes messages wait until let is called.
func (b *box) hold() { b.look(func() { b.held = make(chan struct{}) }) }

func (b *box) let() {
	b.mu.Lock()
	defer b.mu.Unlock()
	select {
	case <-b.held:
	default:
		close(b.held)
	}
}

// look calls f while no message comes.
func (b *box) look(f func()) {
	b.mu.Lock()
	defer b.mu.Unlock()
	f()
}

// until waits until the condition so holds.
func (b *box) until(words string, so func() bool) {
	limit := time.After(b.w.f.Patience)
	for {
		var ok bool
		var n int
		b.look(func() { ok, n = so(), len(b.got) })
		if ok {
			return
		}
		select {
		case <-b.changed:
		case <-limit:
			breaks("after %v: not %s; %d messages came", b.w.f.Patience, words, n)
		}
	}
}

// count waits for n messages, and returns all messages.
func (b *box) count(n int) (got []rawnode.Message) {
	b.until(fmt.Sprintf("%d messages", n), func() bool { return len(b.got) >= n })
	b.look(func() { got = b.got })
	return got
}

// heartbeat, appended, piece and background return messages of the four classes, told apart by a
// number.
func heartbeat(from, to, number uint64) rawnode.Message {
	return wire.Message{Group: theGroup, From: from, To: to, Body: wire.Raft{Message: &pb.Message{
		Type: pb.MsgHeartbeat.Enum(), From: &from, To: &to, Term: new(uint64(1)), Commit: &number}}}
}

func appended(from, to, number uint64, size int) rawnode.Message {
	return wire.Message{Group: theGroup, From: from, To: to, Body: wire.Raft{Message: &pb.Message{
		Type: pb.MsgApp.Enum(), From: &from, To: &to, Term: new(uint64(1)), Index: &number, LogTerm: new(uint64(1)), Commit: new(uint64(1)),
		Entries: []*pb.Entry{{Term: new(uint64(1)), Index: new(number + 1), Data: bytes.Repeat([]byte{byte(number)}, size)}}}}}
}

func piece(from, to, number uint64, size int) rawnode.Message {
	return wire.Message{Group: theGroup, From: from, To: to, Body: wire.Chunk{Stream: 1, Number: number + 1, Data: bytes.Repeat([]byte{byte(number)}, size)}}
}

func background(from, to, number uint64, size int) rawnode.Message {
	m := appended(from, to, number, size)
	m.Background = true
	return m
}

// ofEach returns a message of each class.
func ofEach(from, to, number uint64, size func() int) []rawnode.Message {
	return []rawnode.Message{heartbeat(from, to, number), appended(from, to, number, size()), piece(from, to, number, size()), background(from, to, number, size())}
}

// encoded is a message as bytes, to compare.
func encoded(m rawnode.Message) string {
	b, err := m.MarshalBinary()
	if err != nil {
		return err.Error()
	}
	return fmt.Sprintf("%v %s", m.Background, b)
}

// same compares the received messages with the sent messages, in order.
func same(got, sent []rawnode.Message) {
	for i := range min(len(got), len(sent)) {
		if encoded(got[i]) != encoded(sent[i]) {
			breaks("message %d is not the one that was sent in its place: group %d, from %d to %d, %d bytes, want group %d, from %d to %d, %d bytes",
				i, got[i].Group, got[i].From, got[i].To, got[i].Size(), sent[i].Group, sent[i].From, sent[i].To, sent[i].Size())
		}
	}
	if len(got) != len(sent) {
		breaks("%d messages came, %d were sent", len(got), len(sent))
	}
}

// settled returns after messages of each class, sent now from node 1 to node 2, have arrived: each
// message sent earlier has arrived before, or is lost.
func (w *wiring) settled() {
	b := w.join(1, 77)
	defer w.ends[1].Leave(77)
	sent := ofEach(1, 2, 1, func() int { return 1 })
	for i := range sent {
		sent[i].Group = 77
	}
	w.send(sent...)
	b.count(len(sent))
}
