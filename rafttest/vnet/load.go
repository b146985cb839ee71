// Copyright 2026 The Weft Authors
// SPDX-License-Identifier: Apache-2.0

package vnet

import (
	"encoding/binary"
	"errors"
	"fmt"
	"maps"
	"slices"
	"time"

	pb "go.etcd.io/raft/v3/raftpb"

	"github.com/weftraft/weft/internal/world"
)

// LoadOptions say what clients do. Clients propose where the leader is, and
// propose again when it is another. Either Clients or Rate is set.
type LoadOptions struct {
	// Clients is the number of clients of a closed loop: a client proposes when its
	// last proposal is done.
	Clients int
	// Pause is how long a client of a closed loop rests between two proposals.
	Pause time.Duration
	// Rate is the number of proposals a second, at random times (a Poisson process). They do
	// not wait for earlier proposals: an open loop.
	Rate float64
	// Sizes are the sizes of payloads, each as likely; a size listed twice is
	// twice as likely. At least 8 bytes.
	Sizes []int
	// Seed feeds arrivals and sizes.
	Seed uint64
	// Most ends the load after so many proposals. 0: no end.
	Most int
}

// Load is a load on a cluster, with its outcome.
type Load struct {
	c       *Cluster
	opts    LoadOptions
	draws   world.Draws
	tag     uint64 // upper bits of its proposals' numbers
	begun   uint64
	payload []byte
	open    map[uint64]*call
	retry   bool
	stopped bool
	done    []Call
}

// Call is a finished proposal.
type Call struct {
	// Begun is when the client had the proposal, Done when the leader had
	// applied the entry.
	Begun, Done time.Duration
}

// Latency returns the time of the call.
func (c Call) Latency() time.Duration { return c.Done - c.Begun }

// call is an unfinished proposal.
type call struct {
	begun time.Duration
	size  int
	// reign is the reign of the leader that took the proposal; 0: no leader
	// did.
	reign uint64
}

const (
	// minPayload is the bytes of a proposal's number.
	minPayload = 8
	// retryAfter is how long a client waits after a refusal.
	retryAfter = time.Millisecond
)

// StartLoad begins a load, now.
func (c *Cluster) StartLoad(opts LoadOptions) (*Load, error) {
	var errs []error
	refuse := func(wrong bool, format string, args ...any) {
		if wrong {
			errs = append(errs, fmt.Errorf("vnet: LoadOptions."+format, args...))
		}
	}
	refuse(opts.Clients < 0, "Clients is %d; it must not be negative", opts.Clients)
	refuse(opts.Pause < 0, "Pause is %v; it must not be negative", opts.Pause)
	refuse(opts.Rate < 0, "Rate is %v; it must not be negative", opts.Rate)
	refuse((opts.Clients > 0) == (opts.Rate > 0), "Clients is %d and Rate is %v; exactly one must be above 0", opts.Clients, opts.Rate)
	refuse(len(opts.Sizes) == 0, "Sizes is empty; at least one size is needed")
	for _, s := range opts.Sizes {
		refuse(s < minPayload, "Sizes has %d; at least %d bytes are needed", s, minPayload)
	}
	if err := errors.Join(errs...); err != nil {
		return nil, err
	}
	l := &Load{c: c, opts: opts, draws: world.NewDraws(opts.Seed, 1<<32), tag: uint64(len(c.loads)+1) << 48, open: map[uint64]*call{}}
	l.payload = make([]byte, slices.Max(opts.Sizes))
	noise := world.NewDraws(1, 1<<33) // the same in all runs
	for i := 0; i+8 <= len(l.payload); i += 8 {
		binary.LittleEndian.PutUint64(l.payload[i:], noise.Uint64())
	}
	c.loads = append(c.loads, l)
	for range opts.Clients {
		l.begin()
	}
	if opts.Rate > 0 {
		l.arrivals()
	}
	return l, nil
}

// arrivals plans the next proposal of an open loop.
func (l *Load) arrivals() {
	l.c.After(l.draws.Wait(time.Duration(float64(time.Second)/l.opts.Rate)), func() {
		if !l.stopped {
			l.begin()
			l.arrivals()
		}
	})
}

// Stop ends the load: nothing new is proposed.
func (l *Load) Stop() { l.stopped = true }

// Calls returns the finished proposals, in the order of their ends.
func (l *Load) Calls() []Call { return l.done }

// Open returns how many proposals are not done.
func (l *Load) Open() int { return len(l.open) }

// begin makes a new proposal.
func (l *Load) begin() {
	if l.opts.Most > 0 && l.begun == uint64(l.opts.Most) {
		l.stopped = true
	}
	if l.stopped {
		return
	}
	l.begun++
	o := &call{begun: l.c.Now(), size: world.Pick(l.draws, l.opts.Sizes...)}
	id := l.tag | l.begun
	l.open[id] = o
	l.propose(id, o)
}

func (l *Load) propose(id uint64, o *call) {
	binary.LittleEndian.PutUint64(l.payload, id)
	at := l.c.leader
	if at == 0 {
		return // there will be another
	}
	if o.reign = l.c.reign; l.c.Propose(at, l.payload[:o.size]) != nil {
		o.reign = 0
		l.again()
	}
}

// again plans to propose once more what was refused.
func (l *Load) again() {
	if l.retry {
		return
	}
	l.retry = true
	l.c.After(retryAfter, func() {
		l.retry = false
		l.resend()
	})
}

// resend proposes the payloads not yet sent to the leader, in the order in
// which clients began the calls. A new leader knows nothing of the payloads sent to the leader
// before.
func (l *Load) resend() {
	if l.c.leader == 0 {
		return
	}
	for _, id := range slices.Sorted(maps.Keys(l.open)) {
		if o := l.open[id]; o != nil && o.reign != l.c.reign {
			l.propose(id, o)
		}
	}
}

// applied hears that a node has applied an entry: the call is done, if the node
// is the leader.
func (l *Load) applied(n *node, e *pb.Entry) {
	data := e.GetData()
	if n.id != l.c.leader || len(data) < minPayload || e.GetType() != pb.EntryNormal {
		return
	}
	id := binary.LittleEndian.Uint64(data)
	o := l.open[id]
	if o == nil {
		return
	}
	delete(l.open, id)
	l.done = append(l.done, Call{Begun: o.begun, Done: l.c.Now()})
	if l.opts.Clients > 0 {
		l.c.After(l.opts.Pause, l.begin)
	}
}
