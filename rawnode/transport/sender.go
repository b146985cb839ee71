// Copyright 2026 The Weft Authors
// SPDX-License-Identifier: Apache-2.0

package transport

import (
	"context"
	"errors"
	"fmt"
	"log/slog"
	"net"
	"time"

	"github.com/weftraft/weft/internal/wire"
)

// sender is the goroutine that dials and writes for a link, with its own state.
type sender struct {
	*link
	raw     net.Conn      // nil when there is none
	stop    func() bool   // cancels the closing of raw at the end of the link
	lost    chan struct{} // closed when the peer has closed raw
	out     *target       // writes to raw, or to the TLS connection over raw
	largest int           // the largest frame that the peer takes
	backoff time.Duration
	since   time.Time // of raw's hello
	batch   []queued  // taken from the queue, neither written nor dropped
}

// run is the goroutine.
func (s *sender) run() {
	defer s.end()
	for {
		select {
		case <-s.wake:
		case <-s.lost:
			s.broke(fmt.Errorf("node %d closed the connection", s.peer.id))
			continue
		case <-s.ctx.Done():
			return
		}
		if s.raw == nil {
			if !s.waiting() {
				continue // dropped since
			}
			if err := s.dial(); err != nil {
				s.traffic().dialFailures.Add(1)
				s.fail(err, dropDial)
				continue
			}
		}
		s.send()
	}
}

func (l *link) traffic() *traffic { return &l.peer.traffic[l.class] }
func (l *link) about() about      { return about{peer: l.peer.id, class: l.class} }

// frameBytes is the size at which a frame is full: large enough to make the header's
// cost negligible, small enough to let the receiver work while the next frame is sent.
const frameBytes = 256 << 10

// send writes the queue, a frame at a time.
func (s *sender) send() {
	full := min(frameBytes, s.largest-wire.HeaderLen)
	if s.class == wire.ClassBackground {
		full = min(full, backgroundBytes)
	}
	for {
		s.giveWay()
		var rest []byte
		if s.batch, rest = s.takeToWrite(s.batch, full); len(s.batch) == 0 {
			return
		}
		if rest == nil && s.dropTooLarge() {
			continue
		}
		if err := s.write(rest); err != nil {
			s.broke(fmt.Errorf("write: %w", err))
			return
		}
		s.release(s.batch)
		s.forgetBatch()
	}
}

// dropTooLarge drops a batch of one message that the peer would refuse, and lose the connection with.
func (s *sender) dropTooLarge() bool {
	q := s.batch[0]
	if len(s.batch) > 1 || q.size+wire.HeaderLen <= s.largest { // several are smaller together than a full frame
		return false
	}
	s.t.log(slog.LevelError, s.about(), "message dropped: it is larger than the frames that the peer takes; give all nodes the same MaxFrameBytes and ReceiveBytes",
		"peer", s.peer.id, "class", s.class, "kind", q.msg.Kind(), "bytes", q.size, "largest frame of the peer", s.largest, "largest frame here", s.t.cfg.maxFrame(s.class))
	drops := drops{t: s.t}
	drops.add(q.msg, s.peer, dropSize)
	drops.report()
	s.release(s.batch)
	s.forgetBatch()
	return true
}

// Background frames give way to appends to the same peer, a frame at a time, but get at
// least backgroundBytes in each period of givesWay.
const (
	backgroundBytes = 64 << 10
	givesWay        = 5 * time.Millisecond
)

// giveWay waits while appends wait, in the background class.
func (s *sender) giveWay() {
	if s.class != wire.ClassBackground {
		return
	}
	appends := s.peer.sending[wire.ClassAppend].Load()
	if appends == nil || appends.drains() == nil {
		return
	}
	enough := time.NewTimer(givesWay)
	defer enough.Stop()
	for drains := appends.drains(); drains != nil; drains = appends.drains() {
		select {
		case <-drains:
		case <-enough.C:
			return
		case <-s.ctx.Done():
			return
		}
	}
}

// forgetBatch lets go of the messages in batch.
func (s *sender) forgetBatch() {
	clear(s.batch)
	if s.batch = s.batch[:0]; cap(s.batch) > keepQueue {
		s.batch = nil
	}
}

// write writes the batch as one frame, or the rest of a begun frame.
func (s *sender) write(rest []byte) error {
	start := time.Now()
	if rest != nil {
		bytes, err := s.out.write(net.Buffers{rest})
		s.wrote(bytes, 0, start)
		return err
	}
	defer s.frame.Reset() // let go of the payloads
	sent := s.encode(s.batch, s.out.kinds, start)
	if sent == 0 {
		return nil
	}
	bytes, err := s.out.write(s.frame.Messages())
	if err != nil {
		sent = 0
	}
	s.wrote(bytes, sent, start)
	return err
}

// encode puts the messages of some kinds into the link's frame, and returns their
// number.
func (l *link) encode(batch []queued, kinds wire.Kinds, now time.Time) (sent int) {
	c := l.traffic()
	var waited time.Duration
	l.frame.Reset()
	for _, q := range batch {
		if !kinds.Has(q.msg.Kind()) {
			l.t.count.unsupported.Add(1)
			l.t.count.dropped.Add(1)
			c.dropped[dropKind].Add(1)
			continue
		}
		l.frame.AppendMessage(q.msg)
		waited += now.Sub(q.at)
		sent++
	}
	c.queueTime.Add(int64(waited))
	return sent
}

// wrote counts bytes, and a frame if it has messages.
func (l *link) wrote(bytes int64, messages int, start time.Time) {
	c := l.traffic()
	c.sentBytes.Add(uint64(bytes))
	c.writeTime.Add(int64(time.Since(start)))
	if messages > 0 {
		c.sentFrames.Add(1)
		c.sentMessages.Add(uint64(messages))
	}
}

// dial makes a connection and introduces this node.
func (s *sender) dial() error {
	ctx, cancel := context.WithTimeout(s.ctx, s.t.cfg.DialTimeout)
	defer cancel()
	address := s.t.address(s.peer)
	if address == "" {
		return noAddress(s.peer)
	}
	raw, err := s.t.cfg.Dial(ctx, address)
	if err != nil {
		return fmt.Errorf("dial: %w", err)
	}
	stop := context.AfterFunc(s.ctx, func() { _ = raw.Close() }) // so that all waiting ends
	conn, answer, err := s.introduce(ctx, raw)
	if err != nil {
		stop()
		_ = raw.Close() // given up
		return err
	}
	s.t.log(slog.LevelInfo, s.about(), "connected", "peer", s.peer.id, "class", s.class, "address", raw.RemoteAddr())
	s.traffic().connects.Add(1)
	s.raw, s.stop, s.since = raw, stop, time.Now()
	timeout := s.t.cfg.writeTimeout(s.class)
	endUnacknowledged(raw, timeout)
	out := newOutput(s.ctx, raw, conn, timeout, &s.peer.shaper, s.t.spawn)
	if s.class == wire.ClassControl {
		out.urgent = true
		hurry(raw)
	}
	s.out, s.largest = &target{out, answer.Kinds}, s.t.cfg.maxFrame(s.class)
	if answer.Frame > wire.HeaderLen {
		s.largest = int(min(uint64(s.largest), answer.Frame))
	}
	s.measure(out.unsent)
	s.setState(true, nil, time.Time{})
	if conn == raw { // a connection with TLS would wait
		s.writable(s.out)
	}
	s.watch(conn)
	return nil
}

// introduce makes the connection secure, if this node has a certificate, says hello and
// reads the answer.
func (s *sender) introduce(ctx context.Context, raw net.Conn) (_ net.Conn, answer wire.Answer, err error) {
	if err := raw.SetDeadline(time.Now().Add(s.t.cfg.DialTimeout)); err != nil {
		return nil, answer, err
	}
	conn, err := s.t.secure(ctx, raw, s.peer.id)
	if err != nil {
		return nil, answer, err
	}
	cfg := s.t.cfg
	hello := wire.Hello{Cluster: cfg.Cluster, Node: cfg.Node, Peer: s.peer.id, Class: s.class, Kinds: wire.AllKinds, Capabilities: wire.Capabilities(cfg.Capabilities), Process: s.t.process, Address: cfg.Gateway, Zone: cfg.Zone}
	if err := hello.Write(conn); err != nil {
		return nil, answer, fmt.Errorf("say hello: %w", err)
	}
	answer, err = wire.ReadAnswer(conn)
	if err != nil {
		return nil, answer, fmt.Errorf("read the answer to hello: %w", err)
	}
	if answer.Refused != "" {
		return nil, answer, fmt.Errorf("%w by node %d at %v: %s", errRefused, s.peer.id, raw.RemoteAddr(), answer.Refused)
	}
	s.peer.announce.Store(&announced{answer.Kinds, answer.Capabilities, answer.Zone})
	return conn, answer, conn.SetDeadline(time.Time{})
}

// watch notices when the peer closes the connection, which sends nothing.
func (s *sender) watch(conn net.Conn) {
	lost := make(chan struct{})
	s.lost = lost
	s.t.spawn(func() {
		defer close(lost)
		_, _ = conn.Read(make([]byte, 1)) // with or without an error, the connection is of no use
	})
}

func (s *sender) hangUp() {
	if s.raw != nil {
		s.writable(nil)
		s.measure(nil)
		s.stop()
		s.out.close()
		_ = s.raw.Close() // not politely: a peer that does not read would delay the closing
		s.raw, s.lost, s.out = nil, nil, nil
	}
}

// end does the remaining work when the link is closed.
func (s *sender) end() {
	s.hangUp()
	s.drop(dropClosed)
}

// broke gives the connection up, and tells all groups, because written messages may not
// have arrived. A connection that did not last counts as a failed dial: the peer may end each one, for what this
// node sends.
func (s *sender) broke(err error) {
	if time.Since(s.since) >= s.t.cfg.MaxBackoff {
		s.backoff = 0
	}
	s.hangUp()
	s.traffic().breaks.Add(1)
	s.fail(err, dropBroken)
	s.t.broken(s.peer.id)
}

// fail notes that the peer is unreachable, and drops waiting messages.
func (s *sender) fail(err error, reason dropReason) {
	s.backoff = min(max(2*s.backoff, firstBackoff), s.t.cfg.MaxBackoff)
	news := s.setState(false, err, time.Now().Add(s.backoff))
	switch {
	case s.ctx.Err() != nil:
	case errors.Is(err, errRefused): // the reason is for this node's operator, also if the peer was unreachable before
		s.t.log(slog.LevelError, s.about(), "peer refuses this node", "peer", s.peer.id, "class", s.class, "error", err)
	case news:
		s.t.log(slog.LevelWarn, s.about(), "peer unreachable", "peer", s.peer.id, "class", s.class, "error", err)
	}
	s.drop(reason)
}

// drop drops the batch and the queue.
func (s *sender) drop(reason dropReason) {
	s.batch = s.takeToDrop(s.batch)
	s.release(s.batch)
	drops := drops{t: s.t}
	for _, q := range s.batch {
		drops.add(q.msg, s.peer, reason)
	}
	s.forgetBatch()
	drops.report()
}

// drops gathers unsent messages, for one report per group and peer.
type drops struct {
	t    *TCP
	lost map[[2]uint64]struct{} // group, peer
}

// add counts a message; p is nil if its receiver is not known.
func (d *drops) add(m wire.Message, p *peer, reason dropReason) {
	d.t.count.dropped.Add(1)
	if p != nil {
		p.traffic[m.Class()].dropped[reason].Add(1)
	}
	if reason == dropFull && m.Repaired() {
		return
	}
	if d.lost == nil {
		d.lost = map[[2]uint64]struct{}{}
	}
	d.lost[[2]uint64{m.Group, m.To}] = struct{}{}
}

func (d *drops) report() {
	for key := range d.lost {
		if r := d.t.receiver(key[0]); r != nil {
			r.Unreachable(key[1])
		}
	}
}
