// Copyright 2026 The Weft Authors
// SPDX-License-Identifier: Apache-2.0

package rawnodetest

import (
	"context"
	"errors"
	"fmt"
	"io"
	"sync"
	"time"

	"github.com/weftraft/weft/internal/wire"
	"github.com/weftraft/weft/rawnode"
)

func ruleArrive(w *wiring) error {
	if err := w.open(2); err != nil {
		return err
	}
	for i, size := range []int{0, 1, 100, 4096, 65535, 1 << 20} {
		n := uint64(i)
		for _, m := range []rawnode.Message{heartbeat(1, 2, n), appended(1, 2, n, size), piece(1, 2, n, size), background(1, 2, n, size)} {
			want := encoded(m)
			w.boxes[1].mu.Lock()
			had := len(w.boxes[1].got)
			w.boxes[1].mu.Unlock()
			w.ends[0].Send([]rawnode.Message{m})
			got, err := w.boxes[1].count(had + 1)
			if err != nil {
				return fmt.Errorf("a message of %d bytes: %w", m.Size(), err)
			}
			if encoded(got[had]) != want {
				return fmt.Errorf("a message of class %v and %d bytes has changed on its way", m.Class(), m.Size())
			}
			if encoded(m) != want {
				return fmt.Errorf("method Send has changed the message that it was given, of class %v", m.Class())
			}
		}
	}
	return nil
}

func ruleOrder(w *wiring) error {
	if err := w.open(2); err != nil {
		return err
	}
	const n = 300
	sent := map[wire.Class][]rawnode.Message{}
	var all []rawnode.Message
	for i := range uint64(n) {
		for _, m := range []rawnode.Message{heartbeat(1, 2, i), appended(1, 2, i, w.rng.IntN(3000)), piece(1, 2, i, w.rng.IntN(3000)), background(1, 2, i, w.rng.IntN(3000))} {
			sent[m.Class()] = append(sent[m.Class()], m)
			all = append(all, m)
		}
	}
	for len(all) > 0 {
		k := min(1+w.rng.IntN(40), len(all))
		w.ends[0].Send(all[:k])
		all = all[k:]
	}
	if _, err := w.boxes[1].count(4 * n); err != nil {
		return err
	}
	if err := w.settled(0, 1); err != nil {
		return err
	}
	got, err := w.boxes[1].count(4 * n)
	if err != nil {
		return err
	}
	came := map[wire.Class][]rawnode.Message{}
	for _, m := range got {
		came[m.Class()] = append(came[m.Class()], m)
	}
	for class := range wire.NumClasses {
		if err := same(came[class], sent[class]); err != nil {
			return fmt.Errorf("class %v: %w", class, err)
		}
	}
	return nil
}

func ruleAddress(w *wiring) error {
	if err := w.open(3); err != nil {
		return err
	}
	other := map[int]*box{}
	for i := range 3 {
		b, err := w.join(i, 2)
		if err != nil {
			return err
		}
		other[i] = b
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
		if _, err := b.count(len(want[b])); err != nil {
			return err
		}
	}
	for _, b := range append([]*box{}, w.boxes...) {
		got, err := b.count(len(want[b]))
		if err != nil {
			return err
		}
		if err := same(got, want[b]); err != nil {
			return err
		}
	}
	return nil
}

// flood sends appends to a receiver that does not take them.
func (w *wiring) flood(n int) error {
	w.boxes[1].hold()
	return w.within("Send, to a node that takes nothing,", func() {
		for i := range uint64(n) {
			w.ends[0].Send([]rawnode.Message{appended(1, 2, i, 1<<20)})
		}
	})
}

func ruleSlow(w *wiring) error {
	if err := w.open(2); err != nil {
		return err
	}
	if err := w.flood(100); err != nil {
		return err
	}
	for i := range uint64(3) {
		w.ends[0].Send([]rawnode.Message{heartbeat(1, 2, i)})
		if _, err := w.boxes[1].count(int(i) + 1); err != nil {
			return fmt.Errorf("a control message, while an append waits to be received: %w", err)
		}
	}
	return nil
}

func ruleReported(w *wiring) error {
	if err := w.open(2); err != nil {
		return err
	}
	const n = 200
	if err := w.flood(n); err != nil {
		return err
	}
	w.boxes[1].let()
	// After a later message of the class has arrived, no earlier message can arrive, because a
	// class keeps its order.
	for i := uint64(n); ; i++ {
		w.ends[0].Send([]rawnode.Message{appended(1, 2, i, 1)})
		last := func() bool {
			b := w.boxes[1]
			b.mu.Lock()
			defer b.mu.Unlock()
			return len(b.got) > 0 && b.got[len(b.got)-1].Body.(wire.Raft).GetIndex() >= n
		}
		if i > n+100_000 {
			return errors.New("100,000 messages are lost behind those that found no room")
		}
		if last() {
			break
		}
		time.Sleep(time.Millisecond)
	}
	b := w.boxes[1]
	b.mu.Lock()
	came := 0
	for _, m := range b.got {
		if m.Body.(wire.Raft).GetIndex() < n {
			came++
		}
	}
	b.mu.Unlock()
	if came == n {
		return nil // the transport had room for all messages
	}
	a := w.boxes[0]
	return a.until(fmt.Sprintf("a report of the %d messages that were dropped", n-came), func() bool { return a.lost[2] > 0 })
}

func ruleSendWait(w *wiring) error {
	if err := w.open(2); err != nil {
		return err
	}
	w.boxes[1].hold()
	ctx, cancel := context.WithTimeout(context.Background(), w.f.Patience)
	defer cancel()
	const n = 60
	sent := make(chan error, 1)
	go func() {
		for i := range uint64(n) {
			if err := w.ends[0].SendWait(ctx, piece(1, 2, i, 1<<20)); err != nil {
				sent <- fmt.Errorf("method SendWait of message %d: %w", i, err)
				return
			}
		}
		sent <- nil
	}()
	select {
	case err := <-sent: // there was room for all
		if err != nil {
			return err
		}
		sent <- nil
	case <-time.After(20 * time.Millisecond):
	}
	w.boxes[1].let()
	if err := <-sent; err != nil {
		return err
	}
	got, err := w.boxes[1].count(n)
	if err != nil {
		return fmt.Errorf("of what SendWait took: %w", err)
	}
	for i, m := range got {
		if m.Body.(wire.Chunk).Number != uint64(i)+1 {
			return fmt.Errorf("message %d came where %d was due", m.Body.(wire.Chunk).Number, i+1)
		}
	}
	return nil
}

func ruleContext(w *wiring) error {
	if err := w.open(2); err != nil {
		return err
	}
	w.boxes[1].hold()
	ctx, cancel := context.WithCancel(context.Background())
	var failed error
	var sent sync.Once
	err := w.within("SendWait, whose context has ended,", func() {
		for i := range uint64(1000) {
			if i == 100 { // most transports have had no room for long
				sent.Do(cancel)
			}
			timer := time.AfterFunc(50*time.Millisecond, func() { sent.Do(cancel) })
			failed = w.ends[0].SendWait(ctx, piece(1, 2, i, 1<<20))
			timer.Stop()
			if failed != nil {
				return
			}
		}
	})
	sent.Do(cancel)
	if err != nil {
		return err
	}
	if failed == nil {
		return errors.New("method SendWait takes 1000 messages of 1 MiB that nobody receives: there is no bound to what waits")
	}
	if !errors.Is(failed, context.Canceled) {
		return fmt.Errorf("method SendWait, whose context has ended, returns %v, want the context's error", fmt.Sprint(failed))
	}
	return nil
}

func ruleStranger(w *wiring) error {
	if err := w.open(2); err != nil {
		return err
	}
	a := w.boxes[0]
	for _, m := range []rawnode.Message{heartbeat(1, 99, 1), appended(1, 99, 1, 10)} {
		a.mu.Lock()
		before := a.lost[99]
		a.mu.Unlock()
		w.ends[0].Send([]rawnode.Message{m})
		if err := a.until("a report of a message to a node that is not known", func() bool { return a.lost[99] > before }); err != nil {
			return err
		}
	}
	ctx, cancel := context.WithTimeout(context.Background(), w.f.Patience)
	defer cancel()
	err := w.ends[0].SendWait(ctx, piece(1, 99, 1, 10))
	if err == nil || ctx.Err() != nil {
		return fmt.Errorf("method SendWait to a node that is not known returns %v, want an error, at once", fmt.Sprint(err))
	}
	return nil
}

func ruleJoin(w *wiring) error {
	if err := w.open(2); err != nil {
		return err
	}
	second := &box{w: w, held: w.boxes[1].held, changed: make(chan struct{}, 1)}
	if err := w.ends[1].Join(theGroup, second); err == nil {
		return errors.New("method Join of a group that has a receiver returns no error")
	}
	w.ends[0].Send([]rawnode.Message{heartbeat(1, 2, 1)})
	if _, err := w.boxes[1].count(1); err != nil {
		return fmt.Errorf("after a second Join that was refused: %w", err)
	}
	w.ends[1].Leave(theGroup)
	w.ends[1].Leave(theGroup)
	w.ends[1].Leave(12345)
	third, err := w.join(1, theGroup)
	if err != nil {
		return fmt.Errorf("after Leave: %w", err)
	}
	w.ends[0].Send([]rawnode.Message{heartbeat(1, 2, 2)})
	_, err = third.count(1)
	return err
}

func ruleLeave(w *wiring) error {
	if err := w.open(2); err != nil {
		return err
	}
	w.ends[0].Send([]rawnode.Message{heartbeat(1, 2, 1)})
	if _, err := w.boxes[1].count(1); err != nil {
		return err
	}
	w.ends[1].Leave(theGroup)
	for i := range uint64(10) {
		w.ends[0].Send([]rawnode.Message{heartbeat(1, 2, i), appended(1, 2, i, 100)})
	}
	if err := w.settled(0, 1); err != nil {
		return err
	}
	if got, _ := w.boxes[1].count(1); len(got) != 1 {
		return fmt.Errorf("%d messages came after Leave", len(got)-1)
	}
	return nil
}

func ruleAbsent(w *wiring) error {
	if err := w.open(2); err != nil {
		return err
	}
	var all []rawnode.Message
	for i := range uint64(50) {
		absent, here := appended(1, 2, i, 1000), appended(1, 2, i, 10)
		absent.Group = 5
		all = append(all, absent, here)
	}
	w.ends[0].Send(all)
	got, err := w.boxes[1].count(50)
	if err != nil {
		return err
	}
	for i, m := range got {
		if m.Group != theGroup || m.Body.(wire.Raft).GetIndex() != uint64(i) {
			return fmt.Errorf("message %d is of group %d and number %d", i, m.Group, m.Body.(wire.Raft).GetIndex())
		}
	}
	return nil
}

func ruleMany(w *wiring) error {
	if err := w.open(3); err != nil {
		return err
	}
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
	if err := w.within("Send of many goroutines", wg.Wait); err != nil {
		return err
	}
	got, err := w.boxes[2].count(2 * senders * each)
	if err != nil {
		return err
	}
	seen := map[[2]uint64]bool{}
	for _, m := range got {
		at := [2]uint64{m.From, m.Body.(wire.Chunk).Number}
		if seen[at] {
			return fmt.Errorf("message %d of node %d comes twice", at[1], at[0])
		}
		seen[at] = true
	}
	return nil
}

func ruleClosed(w *wiring) error {
	if err := w.open(2); err != nil {
		return err
	}
	c, ok := w.ends[1].(io.Closer)
	if !ok {
		return nil
	}
	w.ends[0].Send([]rawnode.Message{heartbeat(1, 2, 1)})
	if _, err := w.boxes[1].count(1); err != nil {
		return err
	}
	if err := w.within("Close", func() { _ = c.Close() }); err != nil {
		return err
	}
	a := w.boxes[0]
	for begun := time.Now(); ; time.Sleep(time.Millisecond) {
		w.ends[0].Send([]rawnode.Message{heartbeat(1, 2, 2)})
		a.mu.Lock()
		lost := a.lost[2]
		a.mu.Unlock()
		if lost > 0 {
			return nil
		}
		if time.Since(begun) > w.f.Patience {
			return fmt.Errorf("messages to a node that has closed are not reported within %v", w.f.Patience)
		}
	}
}
