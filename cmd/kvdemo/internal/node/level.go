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

	"github.com/weftraft/weft/cmd/kvdemo/internal/kv"
	"github.com/weftraft/weft/internal/members"
)

// A command of level 1 (transactions, deadlines), 2 (hashes, sorted sets) or 3 (revisions of
// keys) is one that a kvdemo of an earlier version does not know: it would apply the command
// as refused, and have another state than the others. So the groups get to a level L (kv.LevelKey) in
// steps, by keys of group 1, once somebody wants to use such a command:
//
//	want-level   L: somebody wants it
//	knows/ID     L: the node knows the level, and its directory is one that earlier
//	             versions refuse, so that nobody goes back
//	groups       how many groups, and "level L": every member of every group knows. An
//	             earlier version cannot read that, and stops
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
	wanted int
	knows  map[uint64]int
	raised int // by the mark that groups has
}

// parse reads the keys want-level and knows/ID, and passes over all others.
func (l *levels) parse(key, value string) error {
	id, ok := strings.CutPrefix(key, knowsPrefix)
	if !ok && key != wantLevelKey || value == "" {
		return nil
	}
	level, err := strconv.Atoi(value) // one above NewestLevel is wanted by a later version
	if err != nil || key == wantLevelKey {
		l.wanted = level
		return err
	}
	n, err := strconv.ParseUint(id, 10, 64)
	if err != nil {
		return err
	}
	if l.knows == nil {
		l.knows = map[uint64]int{}
	}
	l.knows[n] = level
	return nil
}

// parseGroups reads the value of groupsKey.
func (l *levels) parseGroups(value string) (int, error) {
	groups, level, ok := strings.Cut(value, levelMark)
	if ok {
		var err error
		if l.raised, err = strconv.Atoi(level); err != nil || l.raised < 1 || l.raised > kv.NewestLevel {
			return 0, fmt.Errorf("level %q, this kvdemo knows 1 to %d", level, kv.NewestLevel)
		}
	}
	return strconv.Atoi(groups)
}

// levelPoll is how often a call that waits for a level looks.
const levelPoll = 10 * time.Millisecond

// features says what a level is, for people.
func features(level int) string {
	switch level {
	case 1:
		return "transactions and deadlines"
	case 2:
		return "hashes and sorted sets"
	}
	return "revisions of keys"
}

// valueOf returns the value of a key that has a level; 0 is no value.
func valueOf(level int) string {
	if level == 0 {
		return ""
	}
	return strconv.Itoa(level)
}

// enable returns when a group takes what the level has.
func (n *node) enable(ctx context.Context, g *group, level int) error {
	if g.store.Level() >= level {
		return nil
	}
	ticker := time.NewTicker(levelPoll)
	defer ticker.Stop()
	asked := false
	for g.store.Level() < level {
		t, err := n.readTable()
		if err != nil {
			return err
		}
		if t.levels.wanted < level && !asked {
			swapped, err := n.setSystem(ctx, wantLevelKey, valueOf(t.levels.wanted), valueOf(level))
			if err != nil {
				return unseen("ask for "+features(level), err)
			}
			asked = swapped
		}
		select {
		case <-ctx.Done():
			return n.notEnabled(t, level)
		case <-ticker.C:
		}
	}
	return nil
}

// notEnabled says why a group has not got to a level yet.
func (n *node) notEnabled(t table, level int) error {
	if lack := n.ignorant(t, level); len(lack) > 0 {
		return refusal(codes.Unavailable, fmt.Sprintf(
			"the members %s have not said that they know %s: check that they are up, and that they run this version of kvdemo", join(lack), features(level)))
	}
	return refusal(codes.Unavailable, "the cluster is about to allow "+features(level)+": check that a majority of the nodes is up, and try again")
}

func join(ids []uint64) string {
	var parts []string
	for _, id := range ids {
		parts = append(parts, strconv.FormatUint(id, 10))
	}
	return strings.Join(parts, ", ")
}

// ignorant returns the members of any group that have not said that they know the level.
func (n *node) ignorant(t table, level int) (lack []uint64) {
	for _, g := range n.groups {
		for _, id := range members.IDs(g.host.Status().Members) {
			if t.levels.knows[id] < level {
				lack = append(lack, id)
			}
		}
	}
	slices.Sort(lack)
	return slices.Compact(lack)
}

// followLevel says that this node knows a level, if somebody wants to hear that, and makes
// its directory say so first.
func (n *node) followLevel(ctx context.Context, t table) {
	level, said := min(t.levels.wanted, kv.NewestLevel), t.levels.knows[n.cfg.ID]
	if said >= level {
		return
	}
	err := n.db.Upgrade(level)
	if err == nil {
		ctx, cancel := context.WithTimeout(ctx, defaultDeadline)
		defer cancel()
		_, err = n.setSystem(ctx, knowsPrefix+strconv.FormatUint(n.cfg.ID, 10), valueOf(said), valueOf(level))
	}
	if err != nil && ctx.Err() == nil {
		n.cfg.Log.Info("say that this node knows "+features(level), "error", err)
	}
}

// raiseLevel raises all groups once all members know the level. Only the leader of
// group 1 does.
func (n *node) raiseLevel(ctx context.Context, t table) {
	level := min(t.levels.wanted, kv.NewestLevel)
	if t.groups == 0 || level == 0 || len(n.ignorant(t, level)) > 0 {
		return
	}
	ctx, cancel := context.WithTimeout(ctx, defaultDeadline)
	defer cancel()
	var err error
	if t.levels.raised < level {
		groups := strconv.Itoa(t.groups)
		was := groups
		if t.levels.raised > 0 {
			was += levelMark + valueOf(t.levels.raised)
		}
		_, err = n.setSystem(ctx, groupsKey, was, groups+levelMark+valueOf(level))
	}
	for _, g := range n.groups {
		if now := g.store.Level(); err == nil && now < level {
			_, _, err = g.propose(ctx, kv.Command{Op: kv.OpSystem, Key: kv.LevelKey, Want: []byte(valueOf(now)), Value: []byte(valueOf(level))})
			if err == nil {
				n.cfg.Log.Info("the group takes "+features(level)+" from now on", "group", g.id)
			}
		}
	}
	if err != nil && ctx.Err() == nil {
		n.cfg.Log.Info("allow "+features(level), "error", err)
	}
}
