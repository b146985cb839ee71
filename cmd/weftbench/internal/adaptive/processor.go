// Copyright 2026 The Weft Authors
// SPDX-License-Identifier: Apache-2.0

package adaptive

import (
	"time"

	"github.com/weftraft/weft/ecraft"
)

// Processor is the time that a processor takes for work.
type Processor struct {
	Shared  bool          // all nodes are processes of one machine
	Message time.Duration // to send a message, or to take one
	Send    float64       // seconds a byte, beside
	Entry   time.Duration // to store and apply an entry, at a follower
	Take    float64       // seconds a byte to take, store and apply
	Call    time.Duration // of a client, at the leader
	CallPer float64       // seconds a byte of the call, beside
	Encode  float64       // seconds a byte of payload, to make units and what each member is sent
	Restore float64       // seconds a byte of payload, to put a payload together from units
}

// measured is fitted to the processor time of kvdemo's calls, with full copies and with units, of 1, 4
// and 64 KB by 16 clients, in groups of three and five (weftbench coding), on two processors.
func measured(shared bool) *Processor {
	return &Processor{
		Shared: shared, Message: 8 * us, Send: 1.2e-9, Entry: 30 * us, Take: 5e-9,
		Call: 130 * us, CallPer: 5e-9, Encode: 4e-9, Restore: 1.5e-9,
	}
}

// message is the time to send bytes in a message, or to take a message without bytes.
func (p *Processor) message(bytes int) time.Duration {
	if p == nil {
		return 0
	}
	return p.Message + seconds(float64(bytes)*p.Send)
}

// units is the time to take a message with units of another follower, entry that of one with an
// entry of the leader.
func (p *Processor) units(bytes int) time.Duration {
	return p.Message + seconds(float64(bytes)*p.Take)
}

func (p *Processor) entry(bytes int) time.Duration { return p.Entry + p.units(bytes) }

// call is the leader's time for a client's call.
func (p *Processor) call(size int, coded bool) time.Duration {
	if p == nil || size == 0 {
		return 0
	}
	t := float64(size) * p.CallPer
	if coded {
		t += float64(size) * p.Encode
	}
	return p.Call + seconds(t)
}

// holds is the time for which an entry holds the busiest processor of n nodes, if the message to each
// follower has bytes.
func (p *Processor) holds(n int, size, bytes float64, coded bool) time.Duration {
	if p == nil {
		return 0
	}
	followers := time.Duration(n - 1)
	leader := p.call(int(size), coded) + followers*(p.message(int(bytes))+p.message(0))
	each := p.entry(int(bytes)) + p.message(0)
	if coded {
		each += seconds(size*p.Restore) + (followers-1)*(p.message(int(bytes))+p.units(int(bytes)))
	}
	if p.Shared {
		return leader + followers*each
	}
	return max(leader, each)
}

func seconds(s float64) time.Duration { return time.Duration(s * float64(time.Second)) }

// cpu is a processor: it does work in the order in which the work comes.
type cpu struct {
	free         time.Duration // when it has done all so far
	spent, shown time.Duration // of all time, and up to the last look
	at           time.Duration // time of the last look
	share        float64       // busy of late
}

// newCPUs returns the processors of a leader and its followers.
func newCPUs(p *Processor, n int) (cpus []*cpu) {
	if p == nil {
		return nil
	}
	one := &cpu{}
	for range n {
		if !p.Shared {
			one = &cpu{}
		}
		cpus = append(cpus, one)
	}
	return cpus
}

// work gives a node's processor work, and returns when the work is done.
func (m *model) work(node int, cost time.Duration) time.Duration {
	if m.cpus == nil {
		return m.now
	}
	c := m.cpus[node]
	c.free = max(c.free, m.now) + cost
	c.spent += cost
	return c.free
}

// processed has the receiver's processor take a message, and reports whether the message comes back
// when the processor has.
func (m *model) processed(e *event) bool {
	if m.cpus == nil || e.ran || e.kind == synced {
		return false
	}
	e.ran = true
	switch e.kind {
	case arrival:
		e.at = m.work(int(e.node)+1, m.net.Processor.entry(int(m.log[e.index-1].bytes[e.node])))
	case pushed, beatAt:
		e.at = m.work(int(e.node)+1, m.net.Processor.units(int(e.index)))
	default:
		e.at = m.work(0, m.net.Processor.message(0))
	}
	m.add(*e)
	return true
}

// coded reports whether an entry travels in units.
func (m *model) coded(e *entry) bool {
	for i := range m.followers {
		if e.size > 0 && int(e.units[i]) != e.layout.D {
			return true
		}
	}
	return false
}

// push has a follower send its units of an entry to the other followers, and put the payload
// together. Only the time of processors counts: followers' links are not the leader's.
func (m *model) push(from int, index uint64) {
	e := &m.log[index-1]
	if m.cpus == nil || e.size < threshold || !m.coded(e) {
		return
	}
	m.work(from+1, seconds(float64(e.size)*m.net.Processor.Restore))
	bytes := int(e.units[from]) * (e.size / e.layout.D)
	if bytes == 0 {
		return
	}
	for to, f := range m.followers {
		if to != from {
			left := m.work(from+1, m.net.Processor.message(bytes))
			m.add(event{at: left + f.link.Delay, kind: pushed, node: int16(to), index: uint64(bytes)})
		}
	}
}

// lookAtProcessors tells the policy how busy processors are, as hosts do.
func (m *model) lookAtProcessors() {
	w, ok := m.policy.(ecraft.ProcessorObserver)
	if m.cpus == nil || !ok || m.deaf {
		return
	}
	for _, c := range m.cpus {
		if m.now == c.at {
			continue // shared
		}
		waits := max(0, c.free-m.now) // work that was given, and not done
		done := c.spent - waits
		c.share += (min(1, float64(done-c.shown)/float64(m.now-c.at)) - c.share) / 2
		c.shown, c.at = done, m.now
	}
	w.Busy(0, m.cpus[0].share)
	for i := range m.followers {
		w.Busy(uint64(i)+2, m.cpus[i+1].share)
	}
}
