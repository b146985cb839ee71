// Copyright 2026 The Weft Authors
// SPDX-License-Identifier: Apache-2.0

package nodes

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
	if p.earlier != 0 {
		f.gateReach.EarlierNodes++
	}
}
