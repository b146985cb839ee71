// Copyright 2026 The Weft Authors
// SPDX-License-Identifier: Apache-2.0

package live

import (
	"context"
	"fmt"
	"slices"
	"strconv"
	"sync/atomic"
	"time"

	"go.etcd.io/etcd/api/v3/etcdserverpb"
	clientv3 "go.etcd.io/etcd/client/v3"

	"github.com/weftraft/weft/internal/lab"
)

// cluster is the members and the operations of an operator.
type cluster struct {
	Options
	*lab.Cluster
	lab.Program // etcd, but for Command

	members []*member     // in the order of Nodes
	starts  int           // of processes
	ahead   time.Duration // by how much the clocks of the next processes are ahead, except the time of day
	// endpoints are the members' addresses for clients: another list after each change.
	endpoints atomic.Pointer[[]string]
}

// snapshotCount is the number of entries between two snapshots.
const snapshotCount = 200

// Command implements [lab.Program]. Several binaries take turns, so that a data directory is used by
// each binary.
func (c *cluster) Command(of *lab.Cluster, n *lab.Node) []string {
	env := slices.Clone(c.Env)
	if c.Stepped != "" {
		_ = writeStep(stepFile(n), 0) // a process ends if it finds no file
		env = append(env, c.Stepped+"="+stepFile(n))
	}
	if c.Stuck != "" {
		env = append(env, c.Stuck+"="+gate(n))
	}
	binary := c.Binaries[c.starts%len(c.Binaries)]
	c.starts++
	args := lab.Etcd{Program: binary, Env: func(int) []string { return env }, Args: []string{
		"--heartbeat-interval", "100", "--election-timeout", "1000",
		// Only a few entries are kept, so that a new member needs a snapshot.
		"--snapshot-count", strconv.Itoa(snapshotCount), "--snapshot-catchup-entries", "50",
	}}.Command(of, n)
	if c.ahead != 0 {
		args = append(inTimeNamespace(c.ahead), args...)
	}
	return args
}

func (c *cluster) publish() {
	urls := c.Clients()
	c.endpoints.Store(&urls)
}

func (c *cluster) close() {
	if c.Cluster != nil {
		_ = c.Close() // the run is over
	}
	for _, m := range c.members {
		_ = m.api.Close() // no call is pending
	}
}

// leader returns the member that all running members follow.
func (c *cluster) leader(ctx context.Context) (*member, error) {
	n, _, err := c.Lead(ctx)
	if err != nil {
		return nil, err
	}
	return c.members[slices.Index(c.Nodes, n)], nil
}

// caughtUp waits until m has applied all entries that the other running members have applied by
// now.
func (c *cluster) caughtUp(ctx context.Context, m *member) error {
	var goal uint64
	for _, other := range c.members {
		if other == m || !other.Up() {
			continue
		}
		if s, err := other.status(ctx); err == nil {
			goal = max(goal, s.RaftAppliedIndex)
		}
	}
	return c.Wait(ctx, m.name+" to catch up", func(ctx context.Context) error {
		s, err := m.status(ctx)
		if err == nil && s.RaftAppliedIndex < goal {
			err = fmt.Errorf("it has applied %d of %d entries", s.RaftAppliedIndex, goal)
		}
		return err
	})
}

// replace removes a member and adds a new member with an empty disk in its place: first as a
// learner, which is promoted after catching up.
func (c *cluster) replace(ctx context.Context, old *member) (*member, error) {
	by, err := c.other(old)
	if err != nil {
		return nil, err
	}
	node := c.Replace(old.Node)
	err = c.remove(ctx, by, old)
	old.kill()
	_ = old.api.Close() // no later call uses the client
	if err != nil {
		return nil, err
	}
	fresh, err := newMember(node, c.Leased)
	if err != nil {
		return nil, err
	}
	c.members[slices.Index(c.members, old)] = fresh
	id, err := c.addLearner(ctx, by, fresh)
	if err != nil {
		return nil, err
	}
	if err := fresh.Start(); err != nil {
		return nil, err
	}
	c.publish()
	return fresh, c.Wait(ctx, fresh.name+" to be promoted", func(ctx context.Context) error {
		_, err := by.api.MemberPromote(ctx, id)
		if known, listErr := c.find(ctx, by, fresh); listErr == nil && known != nil && !known.IsLearner {
			return nil
		}
		return err
	})
}

// other returns a running member besides m.
func (c *cluster) other(m *member) (*member, error) {
	for _, o := range c.members {
		if o != m && o.Up() {
			return o, nil
		}
	}
	return nil, fmt.Errorf("no member runs besides %s", m.name)
}

// find returns the cluster's record of m, or nil if m is no member.
func (c *cluster) find(ctx context.Context, by, m *member) (*etcdserverpb.Member, error) {
	list, err := by.api.MemberList(ctx)
	if err != nil {
		return nil, err
	}
	for _, known := range list.Members {
		if slices.Contains(known.PeerURLs, m.peer()) {
			return known, nil
		}
	}
	return nil, nil
}

// remove takes m out of the configuration. etcd refuses a removal for some seconds after an outage,
// and an answer may get lost, so remove goes by the list of members.
func (c *cluster) remove(ctx context.Context, by, m *member) error {
	return c.Wait(ctx, m.name+" to be removed", func(ctx context.Context) error {
		known, err := c.find(ctx, by, m)
		if err != nil || known == nil {
			return err
		}
		_, err = by.api.MemberRemove(ctx, known.ID)
		return err
	})
}

func (c *cluster) addLearner(ctx context.Context, by, m *member) (id uint64, err error) {
	err = c.Wait(ctx, m.name+" to be added", func(ctx context.Context) error {
		known, err := c.find(ctx, by, m)
		if err != nil {
			return err
		}
		if known != nil {
			id = known.ID
			return nil
		}
		resp, err := by.api.MemberAddAsLearner(ctx, []string{m.peer()})
		if err == nil {
			id = resp.Member.ID
		}
		return err
	})
	return id, err
}

// sameData checks that all members hold the same keys at the same revision.
func (c *cluster) sameData(ctx context.Context, revision int64) error {
	var first *clientv3.HashKVResponse
	for _, m := range c.members {
		var h *clientv3.HashKVResponse
		err := c.Wait(ctx, "the hash of "+m.name, func(ctx context.Context) (err error) {
			h, err = m.api.HashKV(ctx, m.Client, revision)
			return err
		})
		if err != nil {
			return err
		}
		if first == nil {
			first = h
		}
		if h.Hash != first.Hash || h.CompactRevision != first.CompactRevision {
			return fmt.Errorf("%w: at revision %d the hash of %s is %08x, that of %s is %08x",
				errOtherData, revision, m.name, h.Hash, c.members[0].name, first.Hash)
		}
	}
	return nil
}
