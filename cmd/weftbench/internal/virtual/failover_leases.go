// Copyright 2026 The Weft Authors
// SPDX-License-Identifier: Apache-2.0

package virtual

import (
	"fmt"
	"math/rand/v2"
	"slices"
	"time"

	pb "go.etcd.io/raft/v3/raftpb"

	"github.com/weftraft/weft/raft"
	"github.com/weftraft/weft/rafttest/vnet"
)

// With leases a group takes longer to start, so the sides of a comparison are brought to
// one state before the kill: the same leader, the same election timeouts, and the same
// instant. What differs then between two gaps of a seed is due to leases alone.

const (
	// settleBy is when the leader leads and every responder has its leases, at the latest.
	settleBy = 2 * time.Second
	// loadTime is how long clients write before the kill.
	loadTime = 200 * time.Millisecond
)

// paired draws the election timeouts of a node. Up to the kill all draws of a seed and
// a node are one number, however many there were; from then on each draw differs, so
// that votes are not split again and again.
type paired struct {
	seed, node uint64
	killed     bool
	draws      uint64
}

// IntN implements raft.Rand.
func (p *paired) IntN(n int) int {
	if p.killed {
		p.draws++
	}
	return rand.New(rand.NewPCG(p.seed<<8|p.node, p.draws)).IntN(n)
}

// killLeased is kill for the comparison of leases on and off.
func (cfg *Failover) killLeased(side Side, voters int, seed uint64) (loss, error) {
	gap := loss{Seed: seed}
	o := network(voters, seed, cfg.Delay)
	var w lossWatch
	w.use(side, &o)
	timeouts := make([]*paired, voters)
	configure := o.Configure
	o.Configure = func(id uint64, c *raft.Config) {
		configure(id, c)
		timeouts[id-1] = &paired{seed: seed, node: id}
		c.Rand = timeouts[id-1]
	}
	heard := make([]time.Duration, voters)
	o.OnArrive = func(node uint64, m *pb.Message) {
		if m.GetFrom() == 1 && restartsTimeout(m.GetType()) {
			heard[node-1] = w.c.Now()
		}
	}
	c, err := vnet.New(o)
	if err != nil {
		return gap, err
	}
	w.c = c
	if err := settleLeased(c); err != nil {
		return gap, err
	}
	load, err := c.StartLoad(vnet.LoadOptions{Rate: cfg.rate(voters, cfg.Load), Sizes: []int{cfg.Size}, Seed: seed})
	if err != nil {
		return gap, err
	}
	at := settleBy + loadTime + time.Duration(seed%1000)*50*time.Microsecond
	if err := c.Run(at); err != nil {
		return gap, err
	}
	if !ready(c) {
		return gap, fmt.Errorf("node 1 does not lead at the kill, or lacks a lease: node %d leads", c.Leader())
	}
	for _, p := range timeouts {
		p.killed = true
	}
	if err := w.loseLeader(&gap, load); err != nil {
		return gap, err
	}
	for _, last := range heard[1:] {
		gap.Heard = append(gap.Heard, last-at)
	}
	return gap, nil
}

// restartsTimeout reports whether a message of the leader restarts the election timeout of
// a follower. Messages of leases do not.
func restartsTimeout(t pb.MessageType) bool {
	return t == pb.MsgApp || t == pb.MsgHeartbeat || t == pb.MsgSnap
}

// sameWord is the largest difference at which two last words of a leader count as the
// same: messages of leases use the cards, and delay other messages by less than that.
const sameWord = 20 * time.Microsecond

// heldBack counts the seeds at which an election came later than at the same seed of a
// base, by a tick or more, although every survivor had heard the old leader last at the
// same time. A promise that holds an election back counts here; a last word that came
// later does not.
func (r lossRow) heldBack(base lossRow) (count int) {
	for i, g := range r.Gaps {
		if g.Elected-base.Gaps[i].Elected >= aTick && g.heardAs(base.Gaps[i]) {
			count++
		}
	}
	return count
}

// heardAs reports whether the last words of the old leader arrived as in another gap.
func (g loss) heardAs(other loss) bool {
	return slices.EqualFunc(g.Heard, other.Heard, func(a, b time.Duration) bool { return (a - b).Abs() <= sameWord })
}

// lastWord returns the mean time from the kill to the last word of the old leader at a
// survivor.
func (r lossRow) lastWord() time.Duration {
	sum, n := time.Duration(0), 0
	for _, g := range r.Gaps {
		for _, at := range g.Heard {
			sum, n = sum+at, n+1
		}
	}
	return sum / time.Duration(max(n, 1))
}

// settleLeased has node 1 lead with every node a responder, and lets time pass up to
// settleBy.
func settleLeased(c *vnet.Cluster) error {
	const step = 100 * time.Millisecond
	for c.Now() < settleBy-step {
		switch lead := c.Leader(); lead {
		case 1:
		case 0:
			if err := c.Campaign(1); err != nil {
				return err
			}
		default:
			if err := c.Do(lead, 0, func(rn *raft.RawNode) { rn.TransferLeader(1) }); err != nil {
				return err
			}
		}
		if err := c.Run(c.Now() + step); err != nil {
			return err
		}
	}
	if err := c.Run(settleBy); err != nil {
		return err
	}
	if !ready(c) {
		return fmt.Errorf("after %v node 1 does not lead, or lacks a lease: node %d leads", settleBy, c.Leader())
	}
	return nil
}

// ready reports whether node 1 leads, and answers reads by leases that are on, as all other
// nodes do if responders are wanted.
func ready(c *vnet.Cluster) bool {
	if c.Leader() != 1 {
		return false
	}
	first := c.Core(1).LeaseStatus()
	if !first.On {
		return true
	}
	for id := uint64(2); id <= uint64(c.Nodes()) && len(first.Roster.Wanted) > 0; id++ {
		if !c.Core(id).LeaseStatus().Stable {
			return false
		}
	}
	return first.Stable
}
