// Copyright 2026 The Weft Authors
// SPDX-License-Identifier: Apache-2.0

package compartments

import (
	"time"

	"github.com/weftraft/weft/cmd/weftbench/internal/machines"
	"github.com/weftraft/weft/internal/replica"
	"github.com/weftraft/weft/internal/world"
)

// writer is the writer of a process's log, which all its groups share.
type writer struct {
	disk  world.Spindle
	queue []write
	busy  bool
}

// write is a write of a group.
type write struct {
	m *member
	*replica.Append
}

// write begins a round: the writer takes all that waits when the processor comes to it, and what it
// took is durable after the disk's time.
func (p *process) write() {
	if p.log.busy || len(p.log.queue) == 0 {
		return
	}
	p.log.busy = true
	p.cpu.Add(func() (time.Duration, func()) {
		c, round := &p.w.Costs, p.log.queue
		p.log.queue = nil
		cost := c.Write + c.WakeWrite
		for _, x := range round {
			cost += machines.Logged(c, x.Append)
		}
		return cost, func() { p.log.disk.Do(p.w.Sync, func() { p.written(round) }) }
	})
}

func (p *process) written(round []write) {
	for _, x := range round {
		x.m.Written(x.Append)
	}
	p.log.busy = false
	p.write()
}
