// Copyright 2026 The Weft Authors
// SPDX-License-Identifier: Apache-2.0

package virtual

import (
	"fmt"
	"time"

	"github.com/weftraft/weft/rafttest/vnet"
)

// Unapplied is the loss of a leader at the moment at which it has acknowledged the last of a burst of entries:
// followers hold a part of some entries only, and have not applied them.
type Unapplied struct {
	Voters, Entries, Size int
	Seed                  uint64
}

// Run returns the time from the votes of a new leader to its first commit.
func (u Unapplied) Run(side Side) (time.Duration, error) {
	o := lan(u.Voters, u.Seed)
	var w lossWatch
	w.use(side, &o)
	c, err := elected(o, &w.c)
	if err != nil {
		return 0, err
	}
	if err := warm(c, u.Size, u.Seed); err != nil {
		return 0, err
	}
	done, err := put(c, u.Entries, u.Entries, u.Size, u.Seed)
	if err == nil && done {
		if c.Leader() != leader {
			return 0, fmt.Errorf("node %d leads before the loss, not node %d", c.Leader(), leader)
		}
		c.Kill(leader)
		w = lossWatch{c: c}
		done, err = c.RunUntil(c.Now()+patient, func() bool { return w.committed > 0 })
	}
	if err == nil && !done {
		err = fmt.Errorf("%d entries of %d bytes, or the next leader's first commit, take more than %v", u.Entries, u.Size, patient)
	}
	return w.committed - w.won, err
}

// warm has the leader serve clients for a while, so that the policy knows the links, and lets all nodes rest.
func warm(c *vnet.Cluster, size int, seed uint64) error {
	const entries, clients = 100, 4
	if done, err := put(c, entries, clients, size, seed); err != nil || !done {
		return fmt.Errorf("%d entries of %d bytes do not all come back in %v: %w", entries, size, patient, err)
	}
	return c.Run(c.Now() + time.Second)
}

// put has clients put entries, and reports whether all are acknowledged in time.
func put(c *vnet.Cluster, entries, clients, size int, seed uint64) (bool, error) {
	load, err := c.StartLoad(vnet.LoadOptions{Clients: clients, Sizes: []int{size}, Seed: seed, Most: entries})
	if err != nil {
		return false, err
	}
	return c.RunUntil(c.Now()+patient, func() bool { return len(load.Calls()) == entries })
}
