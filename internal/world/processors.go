// Copyright 2026 The Weft Authors
// SPDX-License-Identifier: Apache-2.0

package world

// Processors is the processors of a machine that several processes share: a task waits until one is free, in the
// order in which tasks became due.
type Processors struct {
	Free    int
	waiting []func()
}

// take calls begin as soon as a processor is free.
func (p *Processors) take(begin func()) {
	switch {
	case p == nil:
		begin()
	case p.Free > 0:
		p.Free--
		begin()
	default:
		p.waiting = append(p.waiting, begin)
	}
}

// give frees a processor.
func (p *Processors) give() {
	switch {
	case p == nil:
	case len(p.waiting) > 0:
		begin := p.waiting[0]
		p.waiting = p.waiting[1:]
		begin()
	default:
		p.Free++
	}
}
