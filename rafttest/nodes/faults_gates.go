// Copyright 2026 The Weft Authors
// SPDX-License-Identifier: Apache-2.0

package nodes

// beginGates starts the gateways, and plans their faults.
func (w *sim) beginGates() {
	p := &w.plan.gates
	for i := range p.gates {
		gt := &gate{w: w, id: maxNodes + 1 + uint64(i)}
		w.gates = append(w.gates, gt)
		gt.start()
	}
	some := func(happen func(*gate)) func() {
		return func() {
			if gt := w.gates[w.gated.IntN(len(w.gates))]; gt.up {
				happen(gt)
			}
		}
	}
	if p.gates == 0 {
		return
	}
	w.every(p.crash, some(func(gt *gate) {
		w.gateReach.Crashes++
		gt.crash()
		w.After(w.outage(), gt.start)
	}))
	w.every(p.cutOff, some(func(gt *gate) {
		w.gateReach.CutOffs++
		w.tell(gt.id, "cut off")
		// From all nodes, or from one.
		mends := w.net.Isolate(gt.id, true, true)
		if w.gated.Chance(0.6) {
			for _, mend := range mends {
				mend()
			}
			node := 1 + uint64(w.gated.IntN(w.plan.voters))
			mends = []func(){w.net.Cut(gt.id, node), w.net.Cut(node, gt.id)}
		}
		w.mendLater("cut", w.outage(), mends)
	}))
	w.every(p.pause, some(func(gt *gate) {
		w.gateReach.Pauses++
		gt.pause(w.outage())
	}))
	if p.earlier != 0 {
		w.gateReach.EarlierNodes++
	}
}
