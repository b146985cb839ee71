// Copyright 2026 The Weft Authors
// SPDX-License-Identifier: Apache-2.0

package cluster

import (
	"errors"
	"sync"
	"time"
)

// Fault is what happens to a node of a cluster. Strike has it happen, and returns what makes the node
// well again.
type Fault struct {
	Name, About string
	Strike      func(c *Cluster, victim, leader *Node) (heal func() error, err error)
}

// Cut holds up all that a node sends to others, until heal. The cluster needs Config.Links.
func (c *Cluster) Cut(from *Node, to ...*Node) (heal func() error) {
	all := func(yes bool) {
		for _, n := range to {
			c.Network.Links.Cut(from.ID, n.ID, yes)
		}
	}
	all(true)
	return func() error { all(false); return nil }
}

// SlowLinks has all that a node sends and receives take so much longer, until heal. The cluster
// needs Config.Links.
func (c *Cluster) SlowLinks(n *Node, by time.Duration) (heal func() error) {
	all := func(by time.Duration) {
		for _, other := range c.Nodes {
			c.Network.Links.Slow(other.ID, n.ID, by)
			c.Network.Links.Slow(n.ID, other.ID, by)
		}
	}
	all(by)
	return func() error { all(0); return nil }
}

// Falter has the node's process stand still for a time and run for a time, again and again until
// heal.
func (n *Node) Falter(still, runs time.Duration) (heal func() error, err error) {
	if err := n.Pause(); err != nil {
		return nil, err
	}
	var (
		end    = make(chan struct{})
		group  sync.WaitGroup
		failed error
	)
	wait := func(d time.Duration) bool {
		select {
		case <-end:
			return false
		case <-time.After(d):
			return true
		}
	}
	group.Go(func() {
		for failed == nil && wait(still) {
			if failed = n.Resume(); failed == nil && wait(runs) {
				failed = n.Pause()
			}
		}
	})
	return func() error {
		close(end)
		group.Wait()
		return errors.Join(failed, n.Resume())
	}, nil
}
