// Copyright 2026 The Weft Authors
// SPDX-License-Identifier: Apache-2.0

package node

import (
	"context"
	"errors"
	"fmt"
	"path/filepath"
	"strconv"
	"time"

	"github.com/weftraft/weft"
	"github.com/weftraft/weft/cmd/kvdemo/internal/kv"
	"github.com/weftraft/weft/internal/files"
	"github.com/weftraft/weft/internal/members"
	"github.com/weftraft/weft/raft"
	"github.com/weftraft/weft/rawnode"
)

// The state of group 1 has a few keys that clients do not see:
//
//	groups       how many groups the cluster has; the first to write it decides
//	responders   who is to answer reads by roster leases; see wish
//	want-level, knows/ID
//	             which commands the members know; see levels
//
// Members, their addresses, and the ids that do not come back are package weft's.
const (
	groupsKey     = "groups"
	respondersKey = "responders"
)

// table is what the keys say.
type table struct {
	groups   int   // 0: not known yet
	wish     *wish // nil: nobody has said anything
	wishText string
	levels   levels
}

// readTable reads the table as of what this node has applied.
func (n *node) readTable() (table, error) {
	keys, _, err := n.groups[0].store.System()
	if err != nil {
		return table{}, err
	}
	return parseTable(keys)
}

func parseTable(keys map[string][]byte) (table, error) {
	t := table{}
	for key, value := range keys {
		err := t.parse(key, string(value))
		if err != nil {
			return table{}, fmt.Errorf("the cluster's key %q has the value %q: %w; run the version that wrote it", key, value, err)
		}
	}
	return t, nil
}

func (t *table) parse(key, value string) (err error) {
	switch key {
	case groupsKey:
		t.groups, err = t.levels.parseGroups(value)
	case respondersKey:
		t.wishText = value
		t.wish, err = parseWish(value)
	default:
		err = t.levels.parse(key, value) // other keys are of another version
	}
	return err
}

// followInterval is how often follow looks by itself.
const followInterval = 200 * time.Millisecond

// follow keeps the node in accord with the table and the groups' members.
func (n *node) follow(ctx context.Context) {
	ticker := time.NewTicker(followInterval)
	defer ticker.Stop()
	for ctx.Err() == nil {
		if err := n.followOnce(ctx); err != nil {
			n.giveUp(err)
			return
		}
		select {
		case <-ctx.Done():
		case <-n.groups[0].store.SystemChanged():
		case <-ticker.C:
		}
	}
}

func (n *node) followOnce(ctx context.Context) error {
	t, err := n.readTable()
	if err != nil {
		return fmt.Errorf("the node gave up: %w", err)
	}
	if err := n.settle(t); err != nil {
		return err
	}
	if s := n.groups[0].host.Status(); s.Role == raft.StateLeader {
		n.found(ctx, t)
		n.raiseLevel(ctx, t)
	}
	n.followLevel(ctx, t)
	n.tellWish(ctx, t)
	if n.removed() {
		n.cfg.Log.Warn("this node was removed from the cluster: it stops, and its data directory can be deleted", "id", n.cfg.ID)
		_ = n.noteRemoved() // it says what we know
		n.giveUp(nil)
	}
	return nil
}

// removed reports whether this node is a member of no group any more.
func (n *node) removed() bool {
	gone := 0
	for _, g := range n.groups {
		member := members.Has(g.host.Status().Members, n.cfg.ID)
		if g.wasMember && !member || errors.Is(g.weft.Err(), weft.ErrRemoved) {
			gone++
		}
		g.wasMember = g.wasMember || member
	}
	return gone == len(n.groups)
}

// settle compares --groups with what the cluster has.
func (n *node) settle(t table) error {
	select {
	case <-n.settled:
		return nil
	default:
	}
	switch t.groups {
	case 0:
		return nil
	case n.cfg.Groups:
		close(n.settled)
		return nil
	}
	// The directory was made on a wrong assumption, and holds nothing of the
	// groups that there are not.
	s := settings{Cluster: n.cfg.Cluster, Node: n.cfg.ID, Groups: t.groups}
	return errors.Join(fmt.Errorf("--groups: %d, but the cluster has %d groups: start this node with --groups %d", n.cfg.Groups, t.groups, t.groups), s.write(n.cfg.Data))
}

// found writes the number of groups, if it is not in the table yet. Only the leader of group 1 does.
func (n *node) found(ctx context.Context, t table) {
	if t.groups != 0 {
		return
	}
	ctx, cancel := context.WithTimeout(ctx, defaultDeadline)
	defer cancel()
	// If it fails it is tried again; if others were first, they were right.
	if _, err := n.setSystem(ctx, groupsKey, "", strconv.Itoa(n.cfg.Groups)); err != nil && ctx.Err() == nil {
		n.cfg.Log.Info("write a key of the cluster", "key", groupsKey, "error", err)
	}
}

// setSystem sets a key of the table if its value is still old, and returns
// whether it is the new one now.
func (n *node) setSystem(ctx context.Context, key, old, value string) (bool, error) {
	g := n.groups[0]
	_, r, err := g.propose(ctx, kv.Command{Op: kv.OpSystem, Key: key, Want: []byte(old), Value: []byte(value)})
	if err != nil {
		return false, err
	}
	return r.Swapped || string(r.Value) == value, nil
}

// gaveUpFor returns why the node gives up as one of its groups did. That the node has
// lost its log is remembered.
func (n *node) gaveUpFor(g *group, err error) error {
	err = fmt.Errorf("the node gave up: group %d: %w", g.id, err)
	if !errors.Is(err, rawnode.ErrLogLost) {
		return err
	}
	err = fmt.Errorf("%w: kvdemo member remove %d --endpoints ... , then kvdemo serve --join --id NEW --data NEW ... and kvdemo member add NEW", err, n.cfg.ID)
	return errors.Join(err, files.Replace(filepath.Join(n.cfg.Data, lostFile), []byte(err.Error())))
}

// noteRemoved remembers that the node was removed, and says so.
func (n *node) noteRemoved() error {
	s := settings{Cluster: n.cfg.Cluster, Node: n.cfg.ID, Groups: n.cfg.Groups, Removed: true}
	if err := s.write(n.cfg.Data); err != nil {
		return err
	}
	return checkSettings(n.cfg)
}
