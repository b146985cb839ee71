// Copyright 2026 The Weft Authors
// SPDX-License-Identifier: Apache-2.0

package machines

import (
	"slices"
	"time"

	"github.com/weftraft/weft/cmd/weftbench/internal/costs"
	"github.com/weftraft/weft/internal/wire"
	"github.com/weftraft/weft/internal/world"
)

// Process is a processor, the writer of a log, and frames of messages: all groups of a process share them.
type Process struct {
	CPU   world.CPU
	run   *Run
	costs *costs.Costs
	who   string

	disk    world.Spindle
	sync    time.Duration
	queue   []logWrite
	writing bool
}

// logWrite is a write to the log: the processor's time, and what happens when it is durable.
type logWrite struct {
	cost time.Duration
	then func()
}

// NewProcess returns a process, which has a name for failures, and whose disk syncs in some time.
func NewProcess(run *Run, c *costs.Costs, sync time.Duration, who string) Process {
	return Process{CPU: world.CPU{After: run.After, Wake: c.Wake}, run: run, costs: c, who: who, disk: world.NewSpindle(&run.Agenda), sync: sync}
}

// Work has the processor do something.
func (p *Process) Work(cost time.Duration, then func()) {
	p.CPU.Add(func() (time.Duration, func()) { return cost, then })
}

// Idle works for so long at what a process does whether there is a load or not.
func (p *Process) Idle(d time.Duration) {
	p.Work(time.Duration((p.costs.Second+p.costs.WakeSecond).Seconds()*float64(d)), func() {})
}

// Write adds a write to the log.
func (p *Process) Write(cost time.Duration, then func()) {
	p.queue = append(p.queue, logWrite{cost, then})
	p.write()
}

// write begins a round: the writer takes all that waits when the processor comes to it, and what it took is durable
// after the disk's time.
func (p *Process) write() {
	if p.writing || len(p.queue) == 0 {
		return
	}
	p.writing = true
	p.CPU.Add(func() (time.Duration, func()) {
		round, cost := p.queue, p.costs.Write+p.costs.WakeWrite
		p.queue = nil
		for _, x := range round {
			cost += x.cost
		}
		return cost, func() { p.disk.Do(p.sync, func() { p.written(round) }) }
	})
}

func (p *Process) written(round []logWrite) {
	for _, x := range round {
		x.then()
	}
	p.writing = false
	p.write()
}

// Frame is messages of all groups to a process, in one class.
type Frame struct {
	To      uint64
	Class   wire.Class
	Bytes   int
	waiting []wire.Message
	encoded [][]byte
}

// supersede leaves out what the next message makes pointless, by the rule of the transport's queues.
func (f *Frame) supersede(m wire.Message) {
	if place, ok := wire.PlaceOf(m); ok {
		f.waiting = slices.DeleteFunc(f.waiting, func(old wire.Message) bool {
			at, ok := wire.PlaceOf(old)
			return ok && old.Group == m.Group && place.Supersedes(at)
		})
	}
}

// Post makes frames of messages, with or without those that a later one supersedes, and puts them on the network.
func (p *Process) Post(messages []wire.Message, supersede bool, put func(*Frame)) {
	var frames []*Frame
	for _, m := range messages {
		i := slices.IndexFunc(frames, func(f *Frame) bool { return f.To == m.To && f.Class == m.Class() })
		if i < 0 {
			i = len(frames)
			frames = append(frames, &Frame{To: m.To, Class: m.Class()})
		}
		if supersede {
			frames[i].supersede(m)
		}
		frames[i].waiting = append(frames[i].waiting, m)
	}
	cost := time.Duration(0)
	for _, f := range frames {
		for _, m := range f.waiting {
			b, err := m.MarshalBinary()
			if err != nil {
				p.run.Fail("%s encodes a message: %v", p.who, err)
				return
			}
			f.encoded, f.Bytes = append(f.encoded, b), f.Bytes+len(b)
		}
		cost += p.outCost(len(f.encoded), f.Bytes)
	}
	p.Work(cost, func() {
		for _, f := range frames {
			put(f)
		}
	})
}

// Take takes a frame that has arrived.
func (p *Process) Take(f *Frame, receive func(wire.Message)) {
	p.Work(p.inCost(len(f.encoded), f.Bytes), func() {
		for _, b := range f.encoded {
			var m wire.Message
			if err := m.UnmarshalBinary(b); err != nil {
				p.run.Fail("%s decodes a message: %v", p.who, err)
				return
			}
			receive(m)
		}
	})
}

// outCost is what a frame takes of its sender.
func (p *Process) outCost(messages, bytes int) time.Duration {
	return p.costs.FrameOut + time.Duration(messages)*p.costs.Message + costs.PerKiB(bytes, p.costs.KiBOut)
}

// inCost is what a frame takes of its receiver.
func (p *Process) inCost(messages, bytes int) time.Duration {
	return p.costs.FrameIn + time.Duration(messages)*p.costs.Message + costs.PerKiB(bytes, p.costs.KiBIn)
}
