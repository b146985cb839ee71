// Copyright 2026 The Weft Authors
// SPDX-License-Identifier: Apache-2.0

package node

import (
	"context"
	"fmt"
	"slices"
	"strconv"
	"strings"
	"time"

	"google.golang.org/grpc/codes"

	pb "go.etcd.io/raft/v3/raftpb"

	"github.com/weftraft/weft/cmd/kvdemo/internal/kv"
)

// Transactions and deadlines are commands that a kvdemo of the version before does not
// know: it would apply them as refused, and have another state than the others. So the
// groups get to level 1 (kv.LevelKey) in steps, by keys of group 1, once somebody wants
// to use such a command:
//
//	want-level   1: somebody wants it
//	knows/ID     1: the node knows the level, and its directory is one that the version
//	             before refuses, so that nobody goes back
//	groups       how many groups, and "level 1": every member of every group knows. The
//	             version before cannot read that, and stops
//
// Then the leader of group 1 sets the level of each group. Until somebody wants it,
// nodes of both versions run together, and a node can go back to the version before.
const (
	wantLevelKey = "want-level"
	knowsPrefix  = "knows/"
	levelMark    = " level "
)

// levels is what the keys say of levels.
type levels struct {
	wanted bool
	knows  map[uint64]bool
	raised bool // groups has the mark
}

// parse reads a key if it is one of these.
func (l *levels) parse(key, value string) error {
	if key == wantLevelKey {
		l.wanted = value != ""
		return nil
	}
	id, ok := strings.CutPrefix(key, knowsPrefix)
	if !ok {
		return nil
	}
	n, err := strconv.ParseUint(id, 10, 64)
	if err == nil && value != "" {
		if l.knows == nil {
			l.knows = map[uint64]bool{}
		}
		l.knows[n] = true
	}
	return err
}

// parseGroups reads the value of groupsKey.
func (l *levels) parseGroups(value string) (int, error) {
	groups, level, ok := strings.Cut(value, levelMark)
	l.raised = ok
	if ok && level != kv.Level1 {
		return 0, fmt.Errorf("level %q, this kvdemo knows %s", level, kv.Level1)
	}
	return strconv.Atoi(groups)
}

// levelPoll is how often a call that waits for a level looks.
const levelPoll = 10 * time.Millisecond

// enable returns when a group takes transactions and deadlines.
func (n *node) enable(ctx context.Context, g *group) error {
	if g.store.Level() > 0 {
		return nil
	}
	ticker := time.NewTicker(levelPoll)
	defer ticker.Stop()
	asked := false
	for g.store.Level() == 0 {
		t, err := n.readTable()
		if err != nil {
			return err
		}
		if !t.levels.wanted && !asked {
			if _, err := n.setSystem(ctx, wantLevelKey, "", kv.Level1); err != nil {
				return unseen("ask for transactions", err)
			}
			asked = true
		}
		select {
		case <-ctx.Done():
			return n.notEnabled(t)
		case <-ticker.C:
		}
	}
	return nil
}

// notEnabled says why there is no level 1 yet.
func (n *node) notEnabled(t table) error {
	if lack := n.ignorant(t); len(lack) > 0 {
		return refusal(codes.Unavailable, fmt.Sprintf(
			"the members %s have not said that they know transactions and deadlines: check that they are up, and that they run this version of kvdemo", join(lack)))
	}
	return refusal(codes.Unavailable, "the cluster is about to allow transactions and deadlines: check that a majority of the nodes is up, and try again")
}

func join(ids []uint64) string {
	var parts []string
	for _, id := range ids {
		parts = append(parts, strconv.FormatUint(id, 10))
	}
	return strings.Join(parts, ", ")
}

// ignorant returns the members of any group that have not said that they know the level.
func (n *node) ignorant(t table) (lack []uint64) {
	for _, g := range n.groups {
		for _, id := range everybody(g.host.Status().Members) {
			if !t.levels.knows[id] {
				lack = append(lack, id)
			}
		}
	}
	slices.Sort(lack)
	return slices.Compact(lack)
}

func everybody(conf *pb.ConfState) (ids []uint64) {
	for _, some := range [][]uint64{conf.GetVoters(), conf.GetLearners(), conf.GetVotersOutgoing(), conf.GetLearnersNext()} {
		ids = append(ids, some...)
	}
	return ids
}

// followLevel says that this node knows the level, if somebody wants to hear that, and
// makes its directory say so first.
func (n *node) followLevel(ctx context.Context, t table) {
	if !t.levels.wanted || t.levels.knows[n.cfg.ID] {
		return
	}
	err := n.db.Upgrade()
	if err == nil {
		ctx, cancel := context.WithTimeout(ctx, defaultDeadline)
		defer cancel()
		_, err = n.setSystem(ctx, knowsPrefix+strconv.FormatUint(n.cfg.ID, 10), "", kv.Level1)
	}
	if err != nil && ctx.Err() == nil {
		n.cfg.Log.Info("say that this node knows transactions and deadlines", "error", err)
	}
}

// raiseLevel raises all groups once all members know the level. Only the leader of
// group 1 does.
func (n *node) raiseLevel(ctx context.Context, t table) {
	if t.groups == 0 || !t.levels.wanted || len(n.ignorant(t)) > 0 {
		return
	}
	ctx, cancel := context.WithTimeout(ctx, defaultDeadline)
	defer cancel()
	var err error
	if !t.levels.raised {
		groups := strconv.Itoa(t.groups)
		_, err = n.setSystem(ctx, groupsKey, groups, groups+levelMark+kv.Level1)
	}
	for _, g := range n.groups {
		if err == nil && g.store.Level() == 0 {
			_, _, err = g.propose(ctx, kv.Command{Op: kv.OpSystem, Key: kv.LevelKey, Value: []byte(kv.Level1)})
			if err == nil {
				n.cfg.Log.Info("the group takes transactions and deadlines from now on", "group", g.id)
			}
		}
	}
	if err != nil && ctx.Err() == nil {
		n.cfg.Log.Info("allow transactions and deadlines", "error", err)
	}
}
