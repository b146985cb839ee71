// Copyright 2026 The Weft Authors
// SPDX-License-Identifier: Apache-2.0

package rafttest

import (
	"github.com/weftraft/weft/internal/world"
)

// loseSynced plants [losesSynced]: the disk forgets some of the last entries
// reported as durable.
func loseSynced(d *disk, rng world.Draws) {
	im := &d.durable
	drop := min(rng.IntN(3), len(im.entries))
	if im.last()-uint64(drop) < im.checkpoint.GetMetadata().GetIndex() {
		return
	}
	im.entries = im.entries[:len(im.entries)-drop]
	d.pending = d.pending[:0]
	d.live = im.clone()
}
