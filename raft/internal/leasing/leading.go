// Copyright 2026 The Weft Authors
// SPDX-License-Identifier: Apache-2.0

package leasing

import (
	"github.com/weftraft/weft/leases"
	"github.com/weftraft/weft/raft/internal/extend"
)

// workOnChange tells leases.Node whether a change of the configuration waits. While a
// change waits, no responder is named, so that the change may be appended.
func (x *Leases) workOnChange(now leases.Instant) {
	if wants := x.raft.Held() != nil; wants != x.wants {
		x.wants = wants
		x.node.WantChange(now, wants)
	}
}

// workOnTransfer tells leases.Node whether leadership is being handed over.
func (x *Leases) workOnTransfer(now leases.Instant) {
	if heir, must := x.raft.Transferee(); heir != x.heir || must != x.must {
		x.heir, x.must = heir, must
		x.node.HandOver(now, heir != 0, must)
	}
}

// workOn asks Raft to try again what waits for leases, after an event that may end the
// wait: commits, a change of the configuration, a transfer.
func (x *Leases) workOn() {
	if !x.recount {
		return
	}
	x.recount = false
	if x.log.Committed() < x.log.Last().Index {
		x.Ask(extend.Effect{Do: extend.Count})
	}
	if x.wants && x.MayChange() == nil {
		x.Ask(extend.Effect{Do: extend.Retry})
	}
	if x.heir != 0 && x.MayHandTo(x.heir) {
		x.Ask(extend.Effect{Do: extend.Continue})
	}
}
