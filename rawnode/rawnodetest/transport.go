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
	if err := f.Validate(); err != nil {
		t.Fatal(err)
	}
	testAll(t, transportRules, f.stage)
}

// CheckTransport is TestTransport outside a test. The error joins a [RuleError] for each broken
// rule.
func CheckTransport(f TransportFactory) error {
	if err := f.Validate(); err != nil {
		return err
	}
	return checkAll(transportRules, f.stage)
}

func (f TransportFactory) stage(rule string) *wiring {
	if f.Patience == 0 {
		f.Patience = patience
	}
	return &wiring{f: f, rng: draws(rule)}
}

// transportRules are the promises of a transport.
var transportRules = []rule[*wiring]{
	{"messages arrive as they were sent", wired(ruleArrive)},
	{"messages of a class keep their order, and come once", wired(ruleOrder)},
	{"messages go to their node and group alone", wired(ruleAddress)},
	{"a receiver that waits holds up neither Send nor control messages", wired(ruleSlow)},
	{"what is dropped is reported", wired(ruleReported)},
	{"SendWait waits for room, and loses nothing", wired(ruleSendWait)},
	{"SendWait ends with its context", wired(ruleContext)},
	{"a node that is not known is reported", wired(ruleStranger)},
	{"a group has one receiver at a time", wired(ruleJoin)},
	{"nothing comes after Leave", wired(ruleLeave)},
	{"a group that is not joined holds up no other", wired(ruleAbsent)},
	{"many may send at the same time", wired(ruleMany)},
	{"a node that has closed is reported", wired(ruleClosed)},
}

// wiring is the state of a test of a rule.
type wiring struct {
	f     TransportFactory
	rng   *rand.Rand
	ends  []rawnode.Transport
	boxes []*box
}

func wired(check func(*wiring) error) func(*wiring) error {
	return func(w *wiring) error {
		err := check(w)
		for _, b := range w.boxes {
			b.let()
		}
		for _, t := range w.ends {
			if c, ok := t.(io.Closer); ok {
				if hangs := w.within("Close", func() { _ = c.Close() }); hangs != nil {
					err = errors.Join(err, hangs)
				}
			}
		}
		return err
	}
}

func (w *wiring) within(what string, f func()) error {
	done := make(chan struct{})
	go func() { defer close(done); f() }()
	select {
	case <-done:
		return nil
	case <-time.After(w.f.Patience):
		return fmt.Errorf("%s does not return", what)
	}
}

// open opens n nodes and joins a group at each.
func (w *wiring) open(n int) error {
	ends, err := w.f.Open(n)
	w.ends = append(w.ends, ends...)
	if err != nil {
		return fmt.Errorf("function Open: %w", err)
	}
	if len(ends) != n {
		return fmt.Errorf("function Open returns %d transports, want %d", len(ends), n)
	}
	for i := range ends {
		if _, err := w.join(i, theGroup); err != nil {
			return err
		}
	}
	return nil
}

func (w *wiring) join(i int, group uint64) (*box, error) {
	b := &box{w: w, held: make(chan struct{}), changed: make(chan struct{}, 1)}
	close(b.held)
	w.boxes = append(w.boxes, b)
	if err := w.ends[i].Join(group, b); err != nil {
		return b, fmt.Errorf("method Join: %w", err)
	}
	return b, nil
}

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
	b.mu.Lock()
	held := b.held
	b.mu.Unlock()
	if m.Class() != wire.ClassControl {
		<-held
	}
	b.mu.Lock()
	b.got = append(b.got, m)
	b.mu.Unlock()
	b.change()
}

// Unreachable implements [rawnode.Receiver].
func (b *box) Unreachable(peer uint64) {
	b.mu.Lock()
	if b.lost == nil {
		b.lost = map[uint64]int{}
	}
	b.lost[peer]++
	b.mu.Unlock()
	b.change()
}

func (b *box) change() {
	select {
	case b.changed <- struct{}{}:
	default:
	}
}

// hold makes messages wait until let is called.
func (b *box) hold() {
	b.mu.Lock()
	defer b.mu.Unlock()
	b.held = make(chan struct{})
}

func (b *box) let() {
	b.mu.Lock()
	defer b.mu.Unlock()
	select {
	case <-b.held:
	default:
		close(b.held)
	}
}

// until waits until the condition so holds.
func (b *box) until(words string, so func() bool) error {
	limit := time.After(b.w.f.Patience)
	for {
		b.mu.Lock()
		ok := so()
		n := len(b.got)
		b.mu.Unlock()
		if ok {
			return nil
		}
		select {
		case <-b.changed:
		case <-limit:
			return fmt.Errorf("after %v: not %s; %d messages came", b.w.f.Patience, words, n)
		}
	}
}

// count waits for n messages, and returns all messages.
func (b *box) count(n int) ([]rawnode.Message, error) {
	err := b.until(fmt.Sprintf("%d messages", n), func() bool { return len(b.got) >= n })
	b.mu.Lock()
	defer b.mu.Unlock()
	return b.got, err
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

// encoded is a message as bytes, to compare.
func encoded(m rawnode.Message) string {
	b, err := m.MarshalBinary()
	if err != nil {
		return err.Error()
	}
	return fmt.Sprintf("%v %s", m.Background, b)
}

// same compares the received messages with the sent messages, in order.
func same(got, sent []rawnode.Message) error {
	for i := range min(len(got), len(sent)) {
		if encoded(got[i]) != encoded(sent[i]) {
			return fmt.Errorf("message %d is not the one that was sent in its place: group %d, from %d to %d, %d bytes, want group %d, from %d to %d, %d bytes",
				i, got[i].Group, got[i].From, got[i].To, got[i].Size(), sent[i].Group, sent[i].From, sent[i].To, sent[i].Size())
		}
	}
	if len(got) != len(sent) {
		return fmt.Errorf("%d messages came, %d were sent", len(got), len(sent))
	}
	return nil
}

// settled returns after messages of each class, sent now, have arrived: each message sent earlier
// has arrived before, or is lost.
func (w *wiring) settled(from, to int) error {
	b, err := w.join(to, 77)
	if err != nil {
		return err
	}
	defer w.ends[to].Leave(77)
	var sent []rawnode.Message
	for _, m := range []rawnode.Message{heartbeat(uint64(from+1), uint64(to+1), 1), appended(uint64(from+1), uint64(to+1), 1, 1), piece(uint64(from+1), uint64(to+1), 1, 1), background(uint64(from+1), uint64(to+1), 1, 1)} {
		m.Group = 77
		sent = append(sent, m)
	}
	w.ends[from].Send(sent)
	_, err = b.count(len(sent))
	return err
}
