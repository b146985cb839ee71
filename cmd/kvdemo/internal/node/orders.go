// Copyright 2026 The Weft Authors
// SPDX-License-Identifier: Apache-2.0

package node

import (
	"bufio"
	"context"
	"io"
	"sync/atomic"

	"github.com/weftraft/weft/cmd/kvdemo/internal/page"
	"github.com/weftraft/weft/ecraft"
	"github.com/weftraft/weft/ecraft/adaptive"
	"github.com/weftraft/weft/raft"
)

// policySwitch lets a demonstration change by which policy the node codes. The adaptive
// policy goes on learning meanwhile. Without a demonstration there is no switch: a nil
// pointer.
type policySwitch struct{ wanted atomic.Pointer[string] }

// name is the policy that is wanted; the default without a switch.
func (p *policySwitch) name() string {
	if p != nil {
		if name := p.wanted.Load(); name != nil {
			return *name
		}
	}
	return page.PolicyAdaptive
}

func (p *policySwitch) set(name string) { p.wanted.Store(&name) }

// policy returns the policy of a group, which follows the switch; nil without a switch.
func (p *policySwitch) policy() ecraft.Policy {
	if p == nil {
		return nil
	}
	return &switchedPolicy{Policy: adaptive.New(adaptive.Options{}), by: p}
}

// switchedPolicy is the adaptive policy, unless another one is wanted.
type switchedPolicy struct {
	*adaptive.Policy
	by *policySwitch
}

// Assign implements ecraft.Policy.
func (s *switchedPolicy) Assign(r *ecraft.Round, units []int) ecraft.Plan {
	plan := s.Policy.Assign(r, units)
	switch s.by.name() {
	case page.PolicyFewest:
		return ecraft.Levelled{}.Assign(r, units)
	case page.PolicyCopies:
		return ecraft.Full{}.Assign(r, units)
	}
	return plan
}

// coding is how the entries of a group are coded, or nil.
func (n *node) coding() *raft.Coding {
	c := n.cfg.coding()
	if c != nil {
		if policy := n.policy.policy(); policy != nil {
			c.Policy = policy
		}
	}
	return c
}

// ReadOrders sends the orders in a parent's lines to out until the lines or ctx end, and
// tells refused of the lines that are no orders.
func ReadOrders(ctx context.Context, r io.Reader, out chan<- page.Order, refused func(error)) error {
	lines := bufio.NewScanner(r)
	for lines.Scan() {
		o, err := page.ParseOrder(lines.Text())
		if err != nil {
			refused(err)
			continue
		}
		select {
		case out <- o:
		case <-ctx.Done():
			return ctx.Err()
		}
	}
	return lines.Err()
}

// obey carries out the orders of a parent until ctx ends.
func (n *node) obey(ctx context.Context) {
	for {
		select {
		case <-ctx.Done():
			return
		case o := <-n.cfg.Orders:
			if err := n.carryOut(o); err != nil {
				n.cfg.Log.Warn("an order cannot be carried out", "order", o.String(), "error", err)
			}
		}
	}
}

func (n *node) carryOut(o page.Order) error {
	if o.Policy == "" {
		return n.shapes.apply(n.weft.Transport(), o.Peer, o.Shape)
	}
	n.policy.set(o.Policy)
	for _, g := range n.groups {
		g.host.Densify(o.Policy == page.PolicyWhole || n.cfg.Coding == CodingOff)
	}
	return nil
}
