// Copyright 2026 The Weft Authors
// SPDX-License-Identifier: Apache-2.0

package live

import (
	"context"
	"errors"
	"fmt"
	"slices"
	"strings"
	"sync"
	"time"

	"go.etcd.io/etcd/api/v3/etcdserverpb"
	clientv3 "go.etcd.io/etcd/client/v3"

	"github.com/weftraft/weft/internal/lab"
)

// patience bounds each wait for an event that must happen in the end. The bound is far above the
// usual time, so that a busy machine fails no run.
const patience = time.Minute

// cluster is the members and the operations of an operator.
type cluster struct {
	binaries []string
	env      []string // of processes, in addition to this process's environment
	dir      string
	leased   bool
	stepped  string // the variable that names the file with a process's step of the time of day
	stuck    string // the variable that names the file which exists while a process's disk hangs
	starts   int    // of processes
	names    int    // given to members
	members  []*member

	mu      sync.Mutex
	version int // of the list of endpoints
	urls    []string
}

// endpoints returns the clients' URLs, and a version that changes with the list.
func (c *cluster) endpoints() (version int, urls []string) {
	c.mu.Lock()
	defer c.mu.Unlock()
	return c.version, c.urls
}

func (c *cluster) publish() {
	c.mu.Lock()
	defer c.mu.Unlock()
	c.version++
	c.urls = nil
	for _, m := range c.members {
		c.urls = append(c.urls, m.client)
	}
}

// add makes a member that is not started yet.
func (c *cluster) add() (*member, error) {
	c.names++
	m, err := newMember(c.dir, fmt.Sprintf("m%d", c.names))
	if err != nil {
		return nil, err
	}
	m.leased = c.leased
	c.members = append(c.members, m)
	return m, nil
}

func (c *cluster) initial() string {
	var list []string
	for _, m := range c.members {
		list = append(list, m.name+"="+m.peer)
	}
	return strings.Join(list, ",")
}

// start runs a member. Several binaries take turns, so that a data directory is used by each
// binary.
func (c *cluster) start(m *member, state string) error {
	binary := c.binaries[c.starts%len(c.binaries)]
	c.starts++
	env := c.env
	if c.stepped != "" {
		file, err := m.stepFile()
		if err != nil {
			return err
		}
		env = append(slices.Clone(env), c.stepped+"="+file)
	}
	if c.stuck != "" {
		env = append(slices.Clone(env), c.stuck+"="+m.gate())
	}
	return m.start(binary, env, c.initial(), state)
}

func (c *cluster) stop() {
	for _, m := range c.members {
		m.kill()
		_ = m.api.Close() // no call is pending
	}
}

// until calls f until f returns no error, for at most patience. until gives up at once if a member
// that should run has ended.
func (c *cluster) until(ctx context.Context, what string, f func() error) error {
	ctx, cancel := context.WithTimeout(ctx, patience)
	defer cancel()
	for {
		err := f()
		if err == nil {
			return nil
		}
		for _, m := range c.members {
			if m.process != nil && !m.leaving && !m.process.Running() {
				return fmt.Errorf("%s: %s: %w", what, m.name, m.process.Unexpected())
			}
		}
		if lab.Sleep(ctx, 50*time.Millisecond) != nil {
			return fmt.Errorf("%s: not within %v: %w", what, patience, err)
		}
	}
}

var errNoLeader = errors.New("no running member says that it leads")

// leader returns the member that leads. If several members claim to lead, leader returns the member
// with the highest term.
func (c *cluster) leader(ctx context.Context) (*member, error) {
	var leader *member
	err := c.until(ctx, "finding the leader", func() error {
		leader = nil
		var term uint64
		for _, m := range c.members {
			if m.process == nil || m.paused {
				continue
			}
			s, err := m.status(ctx)
			if err == nil && s.Leader == s.Header.MemberId && s.RaftTerm > term {
				leader, term = m, s.RaftTerm
			}
		}
		if leader == nil {
			return errNoLeader
		}
		return nil
	})
	return leader, err
}

// caughtUp waits until m has applied all entries that the other running members have applied by
// now.
func (c *cluster) caughtUp(ctx context.Context, m *member) error {
	var goal uint64
	for _, other := range c.members {
		if other == m || other.process == nil || other.paused {
			continue
		}
		if s, err := other.status(ctx); err == nil {
			goal = max(goal, s.RaftAppliedIndex)
		}
	}
	return c.until(ctx, m.name+" catches up", func() error {
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
	if err := c.remove(ctx, by, old); err != nil {
		return nil, err
	}
	c.members = slices.DeleteFunc(c.members, func(m *member) bool { return m == old })
	old.kill()
	_ = old.api.Close() // no later call uses the client
	fresh, err := c.add()
	if err != nil {
		return nil, err
	}
	id, err := c.addLearner(ctx, by, fresh)
	if err != nil {
		return nil, err
	}
	if err := c.start(fresh, "existing"); err != nil {
		return nil, err
	}
	c.publish()
	return fresh, c.until(ctx, "promoting "+fresh.name, func() error {
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
		if o != m && o.process != nil {
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
		if slices.Contains(known.PeerURLs, m.peer) {
			return known, nil
		}
	}
	return nil, nil
}

// remove takes m out of the configuration. etcd refuses a removal for some seconds after an outage,
// and an answer may get lost, so remove goes by the list of members.
func (c *cluster) remove(ctx context.Context, by, m *member) error {
	m.leaving = true
	return c.until(ctx, "removing "+m.name, func() error {
		known, err := c.find(ctx, by, m)
		if err != nil || known == nil {
			return err
		}
		_, err = by.api.MemberRemove(ctx, known.ID)
		return err
	})
}

func (c *cluster) addLearner(ctx context.Context, by, m *member) (id uint64, err error) {
	err = c.until(ctx, "adding "+m.name, func() error {
		known, err := c.find(ctx, by, m)
		if err != nil {
			return err
		}
		if known != nil {
			id = known.ID
			return nil
		}
		resp, err := by.api.MemberAddAsLearner(ctx, []string{m.peer})
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
		err := c.until(ctx, "hash of "+m.name, func() (err error) {
			h, err = m.api.HashKV(ctx, m.client, revision)
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
