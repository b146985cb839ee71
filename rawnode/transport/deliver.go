// Copyright 2026 The Weft Authors
// SPDX-License-Identifier: Apache-2.0

package transport

import (
	"errors"
	"fmt"

	"github.com/weftraft/weft/internal/wire"
	"github.com/weftraft/weft/rawnode"
)

// delivery takes the messages of a connection's frames to their groups.
type delivery struct {
	t       *TCP
	who     caller
	traffic *traffic
	one     func(wire.Message) // message

	refused error         // the first message of the frame that must not be sent
	last    batchReceiver // not yet told that its messages are complete; or nil
}

// batchReceiver is a receiver that takes messages that came together as one, as
// rawnode.Host does.
type batchReceiver interface {
	rawnode.Receiver
	ReceiveNext(m wire.Message)
	Received(busy bool)
}

var _ batchReceiver = (*rawnode.Host)(nil)

func newDelivery(t *TCP, who caller, traffic *traffic) *delivery {
	d := &delivery{t: t, who: who, traffic: traffic}
	d.one = d.message
	return d
}

// frame delivers the messages of a frame.
func (d *delivery) frame(payload []byte, decode func([]byte, func(wire.Message)) (int, error)) error {
	unknown, err := decode(payload, d.one)
	// A group may use this goroutine to handle its messages, unless others need the
	// goroutine, which also brings other groups' messages, and reads large frames while
	// the group is at work.
	d.received(len(payload) > directBytes || d.t.joined.Load() > 1)
	if unknown > 0 {
		d.t.count.unsupported.Add(uint64(unknown))
		d.traffic.unknown.Add(uint64(unknown))
	}
	if d.refused != nil || err != nil {
		return fmt.Errorf("%w", errors.Join(d.refused, err))
	}
	return nil
}

func (d *delivery) message(m wire.Message) {
	if d.refused != nil {
		return
	}
	m.Background = d.who.class == wire.ClassBackground
	if d.refused = d.t.cfg.permits(d.who, m); d.refused != nil {
		return
	}
	d.traffic.receivedMessages.Add(1)
	switch r := d.t.receiver(m.Group).(type) {
	case nil:
		d.t.count.noGroup.Add(1)
	case batchReceiver:
		if r != d.last {
			d.received(true)
		}
		r.ReceiveNext(m)
		d.last = r
	default:
		r.Receive(m)
	}
}

// received tells the last group that its messages are complete.
func (d *delivery) received(busy bool) {
	if d.last != nil {
		d.last.Received(busy)
		d.last = nil
	}
}
