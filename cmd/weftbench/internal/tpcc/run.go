// Copyright 2026 The Weft Authors
// SPDX-License-Identifier: Apache-2.0

package tpcc

import (
	"errors"
	"fmt"
	"slices"
	"time"

	pb "go.etcd.io/raft/v3/raftpb"

	"github.com/weftraft/weft/internal/world"
	"github.com/weftraft/weft/raft"
	"github.com/weftraft/weft/rafttest/vnet"
)

// Config is a deployment and its load.
type Config struct {
	Machines, Ranges int
	Warehouses       int // of each range
	Failed           int // machines, which are down from before the beginning; less than half of a range's
	Terminals        int // over all warehouses
	Text             int // how many times as long texts are as specified
	Thinks           bool
	Egress           float64 // of a machine's card, bytes a second
	Delay, Jitter    time.Duration
	Sync             time.Duration
	Warm, Time       time.Duration // before the measurement, and of it
	Configure        func(*raft.Config)
	Seed             uint64

	bug bug
}

// Replicas is how many members a range has.
const Replicas = 5

// Outcome is what was measured.
type Outcome struct {
	Rate  float64 // transactions a second, without those rolled back
	Kinds [Kinds]Times
	// Sizes are the bytes of the entries proposed, ascending; Sent is what all machines sent for a byte of these.
	Sizes []int
	Sent  float64
}

// Times are the latencies of a kind of transaction, ascending.
type Times []time.Duration

// keyRange is a Raft group, and the warehouses that it has.
type keyRange struct {
	id       int
	r        *run
	c        *vnet.Cluster
	leader   uint64 // node of the group
	replicas []*replica
	locks    locks
	ends     map[uint64]func() // of entries under way, by id, once the leader has applied
}

func (k *keyRange) leading() *replica { return k.replicas[k.leader-1] }

// run is a run under way.
type run struct {
	Config
	warehouses int
	ranges     []*keyRange
	out        Outcome
	last       uint64 // number given
	open       int    // transactions
	resolving  int    // entries that nobody waits for
	measuring  bool
	stopped    bool
	err        error
}

func (r *run) number() uint64                   { r.last++; return r.last }
func (r *run) now() time.Duration               { return r.ranges[0].c.Now() }
func (r *run) after(d time.Duration, do func()) { r.ranges[0].c.After(d, do) }
func (r *run) rangeOf(w int64) *keyRange        { return r.ranges[w%int64(r.Ranges)] }

func (r *run) fail(err error) {
	if r.err == nil {
		r.err = err
	}
}

// Run runs the load, and checks the replicas. The error says what went wrong, or which condition does not hold.
func Run(cfg Config) (*Outcome, error) {
	r := &run{Config: cfg, warehouses: cfg.Ranges * cfg.Warehouses}
	if err := r.found(); err != nil {
		return nil, err
	}
	for i := range cfg.Terminals {
		t := &terminal{r: r, warehouse: int64(i % r.warehouses), draws: world.NewDraws(cfg.Seed, uint64(i)<<8)}
		r.after(t.draws.Within(0, 100*time.Millisecond), t.next)
	}
	sent := func() (sum uint64) {
		for _, k := range r.ranges {
			sum += k.c.SentByAll().Total()
		}
		return sum
	}
	if err := r.pass(cfg.Warm); err != nil {
		return nil, err
	}
	r.measuring = true
	before := sent()
	if err := r.pass(cfg.Time); err != nil {
		return nil, err
	}
	r.measuring = false
	bytes := 0
	for _, n := range r.out.Sizes {
		bytes += n
	}
	r.out.Sent = float64(sent()-before) / float64(bytes)
	if err := r.settle(); err != nil {
		return nil, err
	}
	slices.Sort(r.out.Sizes)
	for k := range Kinds {
		slices.Sort(r.out.Kinds[k])
		r.out.Rate += float64(len(r.out.Kinds[k])) / cfg.Time.Seconds()
	}
	return &r.out, r.check()
}

// found makes all ranges, with leaders in turns over machines.
func (r *run) found() error {
	hardware := make([]vnet.Node, r.Machines)
	for i := range hardware {
		hardware[i] = vnet.Node{Egress: r.Egress, Sync: r.Sync}
	}
	machines, err := vnet.NewMachines(hardware)
	if err != nil {
		return err
	}
	for id := range r.Ranges {
		k := &keyRange{id: id, r: r, ends: map[uint64]func(){}, locks: locks{held: map[string]bool{}, wait: map[string][]func(){}, bug: r.bug}}
		var has []int64
		for i := range r.Warehouses {
			has = append(has, int64(id+i*r.Ranges))
		}
		rows := load(has, r.Text, world.NewDraws(r.Seed, uint64(id)<<32))
		o := vnet.Options{
			Machines: machines, Seed: r.Seed + uint64(id)<<40, KeepBytes: 4 << 20, Notice: 2*r.Delay + time.Millisecond,
			Link:      func(_, _ uint64) vnet.Link { return vnet.Link{Delay: r.Delay, Jitter: r.Jitter} },
			Configure: func(_ uint64, c *raft.Config) { r.Configure(c) }, OnApply: k.applied,
		}
		for i := range Replicas {
			o.On = append(o.On, (id+i)%r.Machines)
			own := make(map[string][]byte, len(rows))
			for key, value := range rows {
				own[key] = value
			}
			k.replicas = append(k.replicas, &replica{rows: own, intents: map[uint64][]write{}, deaf: r.bug == lostIntents && id == 0})
		}
		if k.c, err = vnet.New(o); err != nil {
			return err
		}
		r.ranges = append(r.ranges, k)
		for i, machine := range o.On {
			if machine >= r.Machines-r.Failed {
				k.c.Kill(uint64(i) + 1)
			} else if k.leader == 0 {
				k.leader = uint64(i) + 1
			}
		}
		if err := k.c.Elect(k.leader); err != nil {
			return err
		}
	}
	return nil
}

// pass lets time pass.
func (r *run) pass(d time.Duration) error {
	err := r.ranges[0].c.Run(r.now() + d)
	for _, k := range r.ranges {
		if err == nil {
			err = k.c.Err()
		}
		if lead := k.c.Leader(); err == nil && lead != k.leader {
			err = fmt.Errorf("range %d is led by its node %d, want %d all the time", k.id, lead, k.leader)
		}
	}
	return errors.Join(err, r.err)
}

// settle ends the load, and waits until all is done, and applied at all replicas.
func (r *run) settle() error {
	r.stopped = true
	done := func() bool {
		if r.open > 0 || r.resolving > 0 {
			return false
		}
		for _, k := range r.ranges {
			for i := range k.replicas {
				if id := uint64(i) + 1; k.c.Alive(id) && k.c.Applied(id) < k.c.Applied(k.leader) {
					return false
				}
			}
		}
		return true
	}
	for range 600 {
		if done() {
			return nil
		}
		if err := r.pass(100 * time.Millisecond); err != nil {
			return err
		}
	}
	return fmt.Errorf("%d transactions and %d entries have not ended in a minute", r.open, r.resolving)
}

// applied hears of an entry that a replica applies.
func (k *keyRange) applied(node uint64, e *pb.Entry) {
	data := e.GetData()
	if len(data) == 0 || e.GetType() != pb.EntryNormal {
		return
	}
	if k.r.bug == deafReplica && node == 3 && e.GetIndex()%10 == 0 {
		return
	}
	id := k.replicas[node-1].apply(data)
	if end := k.ends[id]; end != nil && node == k.leader {
		delete(k.ends, id)
		end()
	}
}

// propose has the group replicate rows, and calls then when the leader has applied the entry.
func (k *keyRange) propose(txn uint64, kind byte, writes []write, then func()) {
	id := k.r.number()
	data := entry(id, txn, kind, writes)
	k.ends[id] = then
	if k.r.measuring {
		k.r.out.Sizes = append(k.r.out.Sizes, len(data))
	}
	k.send(data)
}

// send proposes an entry, again and again while the core has no room.
func (k *keyRange) send(data []byte) {
	err := k.c.Propose(k.leader, data)
	switch {
	case errors.Is(err, raft.ErrProposalDropped):
		k.r.after(time.Millisecond, func() { k.send(data) })
	case err != nil:
		k.r.fail(fmt.Errorf("range %d: %w", k.id, err))
	}
}

// hop calls do at the leader of a range, or from there at home.
func (x *txn) hop(p *part, do func()) {
	if p.at == x.home {
		do()
		return
	}
	x.r.after(x.r.Delay, do)
}

// locked calls then, at home, when all locks are had.
func (x *txn) locked(then func()) {
	var from func(i int)
	from = func(i int) {
		if i == len(x.parts) {
			then()
			return
		}
		p := x.parts[i]
		x.hop(p, func() { p.at.locks.take(p.keys, func() { x.hop(p, func() { from(i + 1) }) }) })
	}
	from(0)
}

// unlock gives the locks of a part back, where its range is led.
func (p *part) unlock() { p.at.locks.give(p.keys) }

// abort ends the transaction without effect.
func (x *txn) abort() {
	for _, p := range x.parts {
		x.hop(p, p.unlock)
	}
	x.done(false)
}

// commit replicates what was written, and ends the transaction when it is safe.
func (x *txn) commit() {
	if len(x.parts) == 1 {
		p := x.parts[0]
		p.at.propose(x.id, direct, p.writes, func() {
			p.unlock()
			x.done(true)
		})
		return
	}
	left := len(x.parts)
	for _, p := range x.parts {
		x.hop(p, func() {
			p.at.propose(x.id, intents, p.writes, func() {
				x.hop(p, func() {
					if left--; left == 0 {
						x.done(true)
						x.resolve()
					}
				})
			})
		})
	}
}

// resolve makes rows of the intents of a transaction that is committed.
func (x *txn) resolve() {
	for _, p := range x.parts {
		x.r.resolving++
		x.hop(p, func() {
			p.at.propose(x.id, resolve, nil, func() {
				x.r.resolving--
				p.unlock()
			})
		})
	}
}

// done answers the terminal. A transaction that was rolled back does not count.
func (x *txn) done(counts bool) {
	x.r.after(x.r.Delay, func() {
		x.r.open--
		if counts && x.r.measuring {
			x.r.out.Kinds[x.kind] = append(x.r.out.Kinds[x.kind], x.r.now()-x.begun)
		}
		x.next()
	})
}
