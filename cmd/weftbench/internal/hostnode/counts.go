// Copyright 2026 The Weft Authors
// SPDX-License-Identifier: Apache-2.0

package hostnode

import "github.com/weftraft/weft/internal/process"

// Counts is the work of a process since its start.
type Counts struct {
	FramesOut, FramesIn, BytesOut, BytesIn float64
	Messages                               float64 // sent and received
	Writes, Entries, LogBytes              float64 // rounds of the log's writer, and what they wrote
	Applied                                float64 // commands
	Proposals, Reads                       float64 // by any way
	Calls                                  [numKinds]float64
	CallBytes                              float64
	Sleeps                                 float64 // of threads: see process.OwnSleeps
}

// Minus returns the work since an earlier look.
func (c Counts) Minus(o Counts) Counts { return c.add(o, -1) }

// Plus returns the work of both.
func (c Counts) Plus(o Counts) Counts { return c.add(o, 1) }

func (c Counts) add(o Counts, times float64) Counts {
	for _, f := range []struct {
		to   *float64
		from float64
	}{
		{&c.FramesOut, o.FramesOut}, {&c.FramesIn, o.FramesIn}, {&c.BytesOut, o.BytesOut}, {&c.BytesIn, o.BytesIn}, {&c.Messages, o.Messages},
		{&c.Writes, o.Writes}, {&c.Entries, o.Entries}, {&c.LogBytes, o.LogBytes}, {&c.Applied, o.Applied},
		{&c.Proposals, o.Proposals}, {&c.Reads, o.Reads}, {&c.CallBytes, o.CallBytes}, {&c.Sleeps, o.Sleeps},
	} {
		*f.to += times * f.from
	}
	for k := range c.Calls {
		c.Calls[k] += times * o.Calls[k]
	}
	return c
}

func (n *node) counts() (c Counts) {
	for _, classes := range n.transport.Stats().Peers {
		for _, t := range classes {
			c.FramesOut, c.FramesIn = c.FramesOut+float64(t.SentFrames), c.FramesIn+float64(t.ReceivedFrames)
			c.BytesOut, c.BytesIn = c.BytesOut+float64(t.SentBytes), c.BytesIn+float64(t.ReceivedBytes)
			c.Messages += float64(t.SentMessages + t.ReceivedMessages)
		}
	}
	n.count(&c)
	for k := range c.Calls {
		c.Calls[k] = float64(n.served[k].Load())
	}
	c.CallBytes, c.Sleeps = float64(n.bytes.Load()), float64(process.OwnSleeps())
	return c
}

func (h host) count(c *Counts) {
	e, s := h.engine.Stats(), h.Status()
	c.Writes, c.Entries, c.LogBytes = float64(e.Batches), float64(e.Entries), float64(e.WrittenBytes)
	c.Applied, c.Proposals, c.Reads = float64(s.Counters.AppliedCommands), float64(s.Counters.Proposals), float64(s.Counters.Reads)
}
