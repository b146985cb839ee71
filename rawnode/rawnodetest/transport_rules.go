// Copyright 2026 The Weft Authors
// SPDX-License-Identifier: Apache-2.0

package rawnodetest

import (
	"context"
	"errors"
	"fmt"
	"io"
	"sync"
	"sync/atomic"
	"time"

	"github.com/weftraft/weft/internal/wire"
	"github.com/weftraft/weft/rawnode"
)

func ruleArrive(w *wiring) {
	for i, size := range []int{0, 1, 100, 4096, 65535, 1 << 20} {
		for _, m := range ofEach(1, 2, uint64(i), func() int { return size }) {
			want, had := encoded(m), len(w.boxes[1].count(0))
			w.send(m)
			when(func() {
				if encoded(w.boxes[1].count(had + 1)[had]) != want {
					breaks("it has changed on its way")
				}
			}, "a message of class %v and %d bytes", m.Class(), m.Size())
			if encoded(m) != want {
				breaks("method Send has changed the message that it was given, of class %v", m.Class())
			}
		}
	}
}

func ruleOrder(w *wiring) {
	const n = 300
	var all []rawnode.Message
	for i := range uint64(n) {
		all = append(all, ofEach(1, 2, i, func() int { return w.rng.IntN(3000) })...)
	}
	for left := all; len(left) > 0; {
		k := min(1+w.rng.IntN(40), len(left))
		w.send(left[:k]...)
		left = left[k:]
	}
	w.boxes[1].count(4 * n)
	w.settled()
	sent, came := byClass(all), byClass(w.boxes[1].count(4*n))
	for class := range wire.NumClasses {
		when(func() { same(came[class], sent[class]) }, "class %v", class)
	}
}

func byClass(messages []rawnode.Message) map[wire.Class][]rawnode.Message {
	by := map[wire.Class][]rawnode.Message{}
	for _, m := range messages {
		by[m.Class()] = append(by[m.Class()], m)
	}
	return by
}

func ruleAddress(w *wiring) {
	other := map[int]*box{}
	for i := range 3 {
		other[i] = w.join(i, 2)
	}
	want := map[*box][]rawnode.Message{}
	for i := range uint64(200) {
		from, to := w.rng.IntN(3), w.rng.IntN(2)
		if to >= from {
			to++
		}
		m := heartbeat(uint64(from+1), uint64(to+1), i)
		b := w.boxes[to]
		if w.rng.IntN(2) == 0 {
			m.Group, b = 2, other[to]
		}
		want[b] = append(want[b], m)
		w.ends[from].Send([]rawnode.Message{m})
		// one message at a time, because messages of several nodes have no common order
		b.count(len(want[b]))
	}
	for _, b := range w.boxes {
		same(b.count(len(want[b])), want[b])
	}
}

// flood sends appends to a receiver that does not take them.
func (w *wiring) flood(n int) {
	w.boxes[1].hold()
	within(w.f.Patience, "Send, to a node that takes nothing,", func() {
		for i := range uint64(n) {
			w.send(appended(1, 2, i, 1<<20))
		}
	})
}

func ruleSlow(w *wiring) {
	w.flood(100)
	for i := range uint64(3) {
		w.send(heartbeat(1, 2, i))
		when(func() { w.boxes[1].count(int(i) + 1) }, "a control message, while an append waits to be received")
	}
}

func ruleReported(w *wiring) {
	const n = 200
	w.flood(n)
	a, b := w.boxes[0], w.boxes[1]
	b.let()
	// After a later message of the class has arrived, no earlier message can arrive, because a
	// class keeps its order.
	var got []rawnode.Message
	for i := uint64(n); len(got) == 0 || indexOf(got[len(got)-1]) < n; i++ {
		if i > n+100_000 {
			breaks("100,000 messages are lost behind those that found no room")
		}
		w.send(appended(1, 2, i, 1))
		time.Sleep(time.Millisecond)
		got = b.count(0)
	}
	came := 0
	for _, m := range got {
		if indexOf(m) < n {
			came++
		}
	}
	if came < n { // otherwise the transport had room for all messages
		a.until(fmt.Sprintf("a report of the %d messages that were dropped", n-came), func() bool { return a.lost[2] > 0 })
	}
}

// indexOf returns the number of an append.
func indexOf(m rawnode.Message) uint64 { return m.Body.(wire.Raft).GetIndex() }

func ruleSendWait(w *wiring) {
	w.boxes[1].hold()
	ctx, cancel := context.WithTimeout(context.Background(), w.f.Patience)
	defer cancel()
	const n = 60
	sent := make(chan error, 1)
	var begun atomic.Int64
	go func() {
		sent <- guarded(func() {
			for i := range uint64(n) {
				begun.Add(1)
				calls(fmt.Sprintf("method SendWait of message %d", i), w.ends[0].SendWait(ctx, piece(1, 2, i, 1<<20)))
			}
		})
	}()
	for last, still := int64(0), 0; last < n && still < 10; time.Sleep(20 * time.Millisecond) { // until all are sent, or a call waits
		if still++; begun.Load() > last {
			last, still = begun.Load(), 0
		}
	}
	w.boxes[1].let()
	must(<-sent)
	when(func() {
		for i, m := range w.boxes[1].count(n) {
			if m.Body.(wire.Chunk).Number != uint64(i)+1 {
				breaks("message %d came where %d was due", m.Body.(wire.Chunk).Number, i+1)
			}
		}
	}, "of what SendWait took")
}

func ruleContext(w *wiring) {
	w.boxes[1].hold()
	ctx, cancel := context.WithCancel(context.Background())
	defer cancel()
	var failed error
	within(w.f.Patience, "SendWait, whose context has ended,", func() {
		for i := range uint64(1000) {
			if i == 100 { // most transports have had no room for long
				cancel()
			}
			timer := time.AfterFunc(50*time.Millisecond, cancel)
			failed = w.ends[0].SendWait(ctx, piece(1, 2, i, 1<<20))
			timer.Stop()
			if failed != nil {
				return
			}
		}
	})
	if failed == nil {
		breaks("method SendWait takes 1000 messages of 1 MiB that nobody receives: there is no bound to what waits")
	}
	if !errors.Is(failed, context.Canceled) {
		breaks("method SendWait, whose context has ended, returns %v, want the context's error", fmt.Sprint(failed))
	}
}

func ruleStranger(w *wiring) {
	a := w.boxes[0]
	for _, m := range []rawnode.Message{heartbeat(1, 99, 1), appended(1, 99, 1, 10)} {
		before := 0
		a.look(func() { before = a.lost[99] })
		w.send(m)
		a.until("a report of a message to a node that is not known", func() bool { return a.lost[99] > before })
	}
	ctx, cancel := context.WithTimeout(context.Background(), w.f.Patience)
	defer cancel()
	err := w.ends[0].SendWait(ctx, piece(1, 99, 1, 10))
	if err == nil || ctx.Err() != nil {
		breaks("method SendWait to a node that is not known returns %v, want an error, at once", fmt.Sprint(err))
	}
}

func ruleJoin(w *wiring) {
	second := &box{w: w, held: w.boxes[1].held, lost: map[uint64]int{}, changed: make(chan struct{}, 1)}
	if err := w.ends[1].Join(theGroup, second); err == nil {
		breaks("method Join of a group that has a receiver returns no error")
	}
	w.send(heartbeat(1, 2, 1))
	when(func() { w.boxes[1].count(1) }, "after a second Join that was refused")
	w.ends[1].Leave(theGroup)
	w.ends[1].Leave(theGroup)
	w.ends[1].Leave(12345)
	when(func() {
		third := w.join(1, theGroup)
		w.send(heartbeat(1, 2, 2))
		third.count(1)
	}, "after Leave")
}

func ruleLeave(w *wiring) {
	w.send(heartbeat(1, 2, 1))
	w.boxes[1].count(1)
	w.ends[1].Leave(theGroup)
	for i := range uint64(10) {
		w.send(heartbeat(1, 2, i), appended(1, 2, i, 100))
	}
	w.settled()
	if got := w.boxes[1].count(1); len(got) != 1 {
		breaks("%d messages came after Leave", len(got)-1)
	}
}

func ruleAbsent(w *wiring) {
	var all []rawnode.Message
	for i := range uint64(50) {
		absent, here := appended(1, 2, i, 1000), appended(1, 2, i, 10)
		absent.Group = 5
		all = append(all, absent, here)
	}
	w.send(all...)
	for i, m := range w.boxes[1].count(50) {
		if m.Group != theGroup || indexOf(m) != uint64(i) {
			breaks("message %d is of group %d and number %d", i, m.Group, indexOf(m))
		}
	}
}

func ruleMany(w *wiring) {
	const senders, each = 4, 100
	var wg sync.WaitGroup
	for from := range 2 {
		for s := range uint64(senders) {
			wg.Go(func() {
				for i := range uint64(each) {
					w.ends[from].Send([]rawnode.Message{piece(uint64(from+1), 3, s*each+i, 200)})
				}
			})
		}
	}
	within(w.f.Patience, "Send of many goroutines", wg.Wait)
	seen := map[[2]uint64]bool{}
	for _, m := range w.boxes[2].count(2 * senders * each) {
		at := [2]uint64{m.From, m.Body.(wire.Chunk).Number}
		if seen[at] {
			breaks("message %d of node %d comes twice", at[1], at[0])
		}
		seen[at] = true
	}
}

func ruleClosed(w *wiring) {
	c, ok := w.ends[1].(io.Closer)
	if !ok {
		return
	}
	w.send(heartbeat(1, 2, 1))
	w.boxes[1].count(1)
	within(w.f.Patience, "Close", func() { _ = c.Close() })
	a := w.boxes[0]
	for begun, lost := time.Now(), 0; lost == 0; time.Sleep(time.Millisecond) {
		w.send(heartbeat(1, 2, 2))
		a.look(func() { lost = a.lost[2] })
		if lost == 0 && time.Since(begun) > w.f.Patience {
			breaks("messages to a node that has closed are not reported within %v", w.f.Patience)
		}
	}
}
