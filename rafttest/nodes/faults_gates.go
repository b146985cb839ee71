// Copyright 2026 The Weft Authors
// SPDX-License-Identifier: Apache-2.0

package nodes

import "time"

// beginGates plans the faults of gateways.
func (f faults) beginGates() {
	p := &f.plan.gates
	if p.gates == 0 {
		return
	}
	some := func(happen func(*gate)) func() {
		return func() {
			if gt := f.gates[f.gated.IntN(len(f.gates))]; gt.up {
				happen(gt)
			}
		}
	}
	f.every(p.crash, some(func(gt *gate) {
		f.gateReach.Crashes++
		gt.crash()
		f.After(f.outage(), gt.start)
	}))
	f.every(p.cutOff, some(func(gt *gate) {
		f.gateReach.CutOffs++
		f.tell(gt.id, "cut off")
		// From all nodes, or from one.
		mends := f.net.Isolate(gt.id, true, true)
		if f.gated.Chance(0.6) {
			for _, mend := range mends {
				mend()
			}
			node := 1 + uint64(f.gated.IntN(f.plan.voters))
			mends = []func(){f.net.Cut(gt.id, node), f.net.Cut(node, gt.id)}
		}
		f.mendLater("cut", f.outage(), mends)
	}))
	f.every(p.pause, some(func(gt *gate) {
		f.gateReach.Pauses++
		gt.pause(f.outage())
	}))
	f.every(p.homes, some(func(gt *gate) {
		f.troubleHome(gt, f.groups[f.homes.IntN(len(f.groups))], homeTrouble(f.homes.IntN(int(homeTroubles))), f.outage())
	}))
	if p.earlier != 0 {
		f.gateReach.EarlierNodes++
	}
}

// homeTrouble is what is wrong with the home of a gateway, while all others are well.
type homeTrouble int

const (
	homeSlow   homeTrouble = iota // its disk is slow
	homeHangs                     // its disk hangs
	homeLate                      // its state machine is late
	homeAlone                     // it is cut off from the other members,
	homeDeaf                      // or hears nothing of them,
	homeMute                      // or they hear nothing of it
	homeShuns                     // nothing that the gateway sends arrives there
	homeSilent                    // nothing that it sends arrives at the gateway
	homeTroubles
)

// troubleHome lets something be wrong with the home of a gateway.
func (f faults) troubleHome(gt *gate, g *group, what homeTrouble, lasting time.Duration) {
	n := f.node(gt.groups[g.id].r.Status().Home)
	if n == nil || !n.up {
		return
	}
	f.gateReach.Troubles[what]++
	f.tell(n.id, "the home of %v: trouble %d", gt, what)
	var mends []func()
	switch what {
	case homeSlow:
		n.disk.Slow(20, lasting)
	case homeHangs:
		n.disk.Hang(lasting)
	case homeLate:
		n.lateUntil = f.Now() + lasting
	case homeAlone, homeDeaf, homeMute:
		for _, other := range f.nodes {
			if other != n && what != homeMute {
				mends = append(mends, f.net.Cut(other.id, n.id))
			}
			if other != n && what != homeDeaf {
				mends = append(mends, f.net.Cut(n.id, other.id))
			}
		}
	case homeShuns:
		mends = append(mends, f.net.Cut(gt.id, n.id))
	case homeSilent:
		mends = append(mends, f.net.Cut(n.id, gt.id))
	}
	f.mendLater("trouble", lasting, mends)
}
