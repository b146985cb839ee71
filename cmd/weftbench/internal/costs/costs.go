// Copyright 2026 The Weft Authors
// SPDX-License-Identifier: Apache-2.0

// Package costs knows what work takes of a processor, at any process of a cluster: a leader, a
// follower, a reader or a gateway. The costs are fitted to the processor time of real Hosts, each a
// process of its own, under loads that differ in one thing at a time.
//
//	costs.go    the costs, and what work costs by them
//	fitted.go   the costs of this code, as fitted
//	measure.go  loads on real processes
//	fit.go      the fit, its error, and the report
package costs

import (
	"time"

	"github.com/weftraft/weft/cmd/weftbench/internal/hostnode"
)

// Costs is what work takes of a processor.
type Costs struct {
	Second time.Duration // of a second, for the clock, heartbeats and the runtime
	// Sleep is a sleep of a thread of the process, with what wakes it: the scheduler's work and the kernel's. Work that comes
	// while threads are awake costs none, so few clients' work costs more than that of many.
	Sleep time.Duration
	// A simulated process has no threads. In the place of sleeps it takes WakeSecond a second, WakeWrite a round of the log's
	// writer, and Wake whenever it gets work and had none. They are no part of Of.
	WakeSecond, WakeWrite, Wake time.Duration
	// A frame between processes, and 1024 bytes of frames, at the sender and at the receiver.
	FrameOut, FrameIn, KiBOut, KiBIn time.Duration
	Message                          time.Duration // a message in a frame, at either end
	Write                            time.Duration // a round of the log's writer
	Entry                            time.Duration // an entry in the log
	LogKiB                           time.Duration // 1024 bytes of the log
	Apply                            time.Duration // a command, applied by a state machine that does nothing
	Propose                          time.Duration // a command of a client, with its result: the Host's part
	Read                             time.Duration // a read of a client: the Host's part
	Lean                             time.Duration // a client's call in a frame that many clients share: the server's part
	RPC                              time.Duration // a client's call by gRPC: the server's part
	CallKiB                          time.Duration // 1024 bytes of a command in a call
}

// term is a cost, and how often work has it.
type term struct {
	name  string
	unit  string
	cost  *time.Duration
	count func(Work) float64
}

// Work is what a process has done in a time.
type Work struct {
	Seconds float64
	hostnode.Counts
}

// terms lists all costs.
func (c *Costs) terms() []term {
	const kib = 1024
	return []term{
		{"second", "a second", &c.Second, func(w Work) float64 { return w.Seconds }},
		{"sleep", "a thread that sleeps, and wakes", &c.Sleep, func(w Work) float64 { return w.Sleeps }},
		{"frame out", "a frame, sent", &c.FrameOut, func(w Work) float64 { return w.FramesOut }},
		{"frame in", "a frame, received", &c.FrameIn, func(w Work) float64 { return w.FramesIn }},
		{"message", "a message in a frame, sent or received", &c.Message, func(w Work) float64 { return w.Messages }},
		{"bytes out", "a KiB, sent", &c.KiBOut, func(w Work) float64 { return w.BytesOut / kib }},
		{"bytes in", "a KiB, received", &c.KiBIn, func(w Work) float64 { return w.BytesIn / kib }},
		{"write", "a round of the log's writer", &c.Write, func(w Work) float64 { return w.Writes }},
		{"entry", "an entry in the log", &c.Entry, func(w Work) float64 { return w.Entries }},
		{"log", "a KiB of the log", &c.LogKiB, func(w Work) float64 { return w.LogBytes / kib }},
		{"apply", "a command applied", &c.Apply, func(w Work) float64 { return w.Applied }},
		{"propose", "a command of a client, with its result", &c.Propose, func(w Work) float64 { return w.Proposals }},
		{"read", "a read of a client", &c.Read, func(w Work) float64 { return w.Reads }},
		{"lean call", "a call in a frame, beside", &c.Lean, func(w Work) float64 { return w.Calls[hostnode.Lean] }},
		{"gRPC call", "a call by gRPC, beside", &c.RPC, func(w Work) float64 { return w.Calls[hostnode.RPC] }},
		{"call bytes", "a KiB of a command in a call", &c.CallKiB, func(w Work) float64 { return w.CallBytes / kib }},
	}
}

// Of returns what work takes by the costs.
func (c Costs) Of(w Work) time.Duration {
	sum := 0.0
	for _, t := range c.terms() {
		sum += float64(*t.cost) * t.count(w)
	}
	return time.Duration(sum)
}

// ofBytes returns the costs of bytes alone.
func (c Costs) ofBytes() Costs {
	return Costs{KiBOut: c.KiBOut, KiBIn: c.KiBIn, LogKiB: c.LogKiB, CallKiB: c.CallKiB}
}

// PerKiB returns the time of bytes, given the time of a KiB.
func PerKiB(bytes int, kib time.Duration) time.Duration {
	return time.Duration(int64(bytes) * int64(kib) >> 10)
}
