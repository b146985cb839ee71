// Copyright 2026 The Weft Authors
// SPDX-License-Identifier: Apache-2.0

package coding

import (
	"github.com/weftraft/weft/gossip"
	"github.com/weftraft/weft/raft/internal/extend"
)

// parts is what a node that codes has in every role.
type parts struct {
	rule
	accounts *accounts
	payloads *payloads
	wants    *wants
	reports  *reports
}

// maxOnOrder bounds the bytes of units that a node has asked for.
const maxOnOrder = 4 << 20

func newParts(id uint64, cfg Config, log extend.Log, raft extend.View) parts {
	n := &node{id: id, cfg: cfg, log: log, raft: raft, plain: cfg.Plain}
	p := parts{rule: rule{node: n, ledger: &ledger{}}}
	p.ledger.restored(log.Applied()) // applied entries may be coded; see Surveyed and seek
	p.accounts = &accounts{node: n, ledger: p.ledger, of: map[uint64]*account{}}
	p.payloads = &payloads{node: n, ledger: p.ledger, store: gossip.NewStore(id, cfg.Memory), wanted: map[uint64]*record{}}
	p.payloads.store.Applied(log.Applied())
	pulls := gossip.PullerOptions{
		Patience: 1 + cfg.GossipDelay*min(cfg.GossipGap, 1),
		Batch:    max(1, min(maxOnOrder, cfg.Memory/8)),
	}
	if cfg.Zone != nil {
		pulls.Near = n.near
	}
	puller := gossip.NewPuller(id, pulls)
	puller.SetMembers(raft.Electorate().Everyone())
	p.wants = &wants{payloads: p.payloads, puller: puller}
	p.reports = &reports{node: n, payloads: p.payloads, wants: p.wants}
	return p
}
