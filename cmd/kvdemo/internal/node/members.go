// Copyright 2026 The Weft Authors
// SPDX-License-Identifier: Apache-2.0

package node

import (
	"cmp"
	"context"
	"errors"
	"fmt"
	"os"
	"path/filepath"
	"strconv"
	"strings"
	"time"

	pb "go.etcd.io/raft/v3/raftpb"

	"github.com/weftraft/weft/cmd/kvdemo/internal/client"
	"github.com/weftraft/weft/cmd/kvdemo/internal/kv"
	"github.com/weftraft/weft/internal/members"
	"github.com/weftraft/weft/raft"
	"github.com/weftraft/weft/rawnode"
)

// The state of group 1 has a few keys that clients do not see:
//
//	groups       how many groups the cluster has; the first to write it decides
//	member/ID    address ADDRESS, or removed: nobody may come back under an id
//	             whose data directory may be gone
//	responders   who is to answer reads by roster leases; see wish
//	want-level, knows/ID
//	             which commands the members know; see levels
//
// Who is a member of a group is in the group's own configuration; this table
// says where to find it. An address is there before the first group has the
// node, and until the last has it no more.
const (
	groupsKey     = "groups"
	memberPrefix  = "member/"
	respondersKey = "responders"
	addressMark   = "address "
	removedMark   = "removed"
)

func memberKey(id uint64) string { return memberPrefix + strconv.FormatUint(id, 10) }

// table is what the keys say.
type table struct {
	groups    int // 0: not known yet
	addresses map[uint64]string
	removed   map[uint64]bool
	wish      *wish // nil: nobody has said anything
	wishText  string
	levels    levels
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
	t := table{addresses: map[uint64]string{}, removed: map[uint64]bool{}}
	for key, value := range keys {
		err := t.parse(key, string(value))
		if err != nil {
			return table{}, fmt.Errorf("the cluster's key %q has the value %q: %w; run the version that wrote it", key, value, err)
		}
	}
	return t, nil
}

func (t *table) parse(key, value string) (err error) {
	id, isMember := strings.CutPrefix(key, memberPrefix)
	switch {
	case key == groupsKey:
		t.groups, err = t.levels.parseGroups(value)
		return err
	case key == respondersKey:
		t.wishText = value
		t.wish, err = parseWish(value)
		return err
	case !isMember:
		return t.levels.parse(key, value) // other keys are of a later version
	}
	n, err := strconv.ParseUint(id, 10, 64)
	if err != nil {
		return err
	}
	if value == removedMark {
		t.removed[n] = true
		return nil
	}
	address, ok := strings.CutPrefix(value, addressMark)
	if !ok {
		return errors.New("want an address")
	}
	t.addresses[n] = address
	return client.CheckAddress(address)
}

// openPeers tells the transport what the state knows of addresses.
func (n *node) openPeers() error {
	t, err := n.readTable()
	if err != nil {
		return err
	}
	if t.removed[n.cfg.ID] {
		return n.noteRemoved()
	}
	n.tellPeers(t)
	return nil
}

// addresses returns where nodes listen for peers. Members of a version of kvdemo without package weft say
// that in the table alone.
func (n *node) addresses(t table) map[uint64]string {
	all := n.weft.Addresses()
	for id, address := range t.addresses {
		all[id] = cmp.Or(all[id], address)
	}
	return all
}

// tellPeers tells the transport of nodes that package weft has not heard of.
func (n *node) tellPeers(t table) {
	known := n.weft.Addresses()
	for id, address := range t.addresses {
		if known[id] == "" {
			n.weft.Transport().SetPeer(id, address)
		}
	}
	for id := range t.removed {
		n.weft.Transport().RemovePeer(id)
	}
}

// followInterval is how often follow looks by itself.
const followInterval = 200 * time.Millisecond

// follow keeps the node in accord with the table and the groups' members.
func (n *node) follow(ctx context.Context) {
	ticker := time.NewTicker(followInterval)
	defer ticker.Stop()
	wasMember := make([]bool, len(n.groups))
	for ctx.Err() == nil {
		if err := n.followOnce(ctx, wasMember); err != nil {
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

func (n *node) followOnce(ctx context.Context, wasMember []bool) error {
	t, err := n.readTable()
	if err != nil {
		return fmt.Errorf("the node gave up: %w", err)
	}
	n.tellPeers(t)
	if err := n.settle(t); err != nil {
		return err
	}
	if s := n.groups[0].host.Status(); s.Role == raft.StateLeader {
		n.found(ctx, t, s.Members)
		n.raiseLevel(ctx, t)
	}
	n.followLevel(ctx, t)
	n.noteAddress(ctx, t)
	n.tellWish(ctx, t)
	gone := 0
	for i, g := range n.groups {
		member := members.Has(g.host.Status().Members, n.cfg.ID)
		if wasMember[i] && !member {
			gone++
		}
		wasMember[i] = wasMember[i] || member
	}
	if t.removed[n.cfg.ID] || gone == len(n.groups) {
		n.cfg.Log.Warn("this node was removed from the cluster: it stops, and its data directory can be deleted", "id", n.cfg.ID)
		_ = n.noteRemoved() // it says what we know
		n.giveUp(nil)
	}
	return nil
}

// noteAddress brings the table up to date if this node has moved. The other members hear of that by package
// weft; those of a version without that package need the table.
func (n *node) noteAddress(ctx context.Context, t table) {
	was, is := t.addresses[n.cfg.ID], n.weft.Address()
	if was == "" || was == is {
		return
	}
	ctx, cancel := context.WithTimeout(ctx, noteTimeout)
	defer cancel()
	if _, err := n.setSystem(ctx, memberKey(n.cfg.ID), addressMark+was, addressMark+is); err != nil && ctx.Err() == nil {
		n.cfg.Log.Info("note that this node has moved", "address", is, "error", err)
	}
}

// noteTimeout bounds an attempt of noteAddress.
const noteTimeout = time.Second

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

// found writes what is not in the table yet: the number of groups, and where the
// first members are. Only the leader of group 1 does.
func (n *node) found(ctx context.Context, t table, conf *pb.ConfState) {
	set := func(key, value string) {
		ctx, cancel := context.WithTimeout(ctx, defaultDeadline)
		defer cancel()
		// If it fails it is tried again; if others were first, they were right.
		if _, err := n.setSystem(ctx, key, "", value); err != nil && ctx.Err() == nil {
			n.cfg.Log.Info("write a key of the cluster", "key", key, "error", err)
		}
	}
	if t.groups == 0 {
		set(groupsKey, strconv.Itoa(n.cfg.Groups))
	}
	for _, id := range conf.GetVoters() {
		if t.addresses[id] == "" && !t.removed[id] && n.cfg.Peers[id] != "" {
			set(memberKey(id), addressMark+n.cfg.Peers[id])
		}
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
	return errors.Join(err, os.WriteFile(filepath.Join(n.cfg.Data, lostFile), []byte(err.Error()), 0o644))
}

// noteRemoved remembers that the node was removed, and says so.
func (n *node) noteRemoved() error {
	s := settings{Cluster: n.cfg.Cluster, Node: n.cfg.ID, Groups: n.cfg.Groups, Removed: true}
	if err := s.write(n.cfg.Data); err != nil {
		return err
	}
	return checkSettings(n.cfg)
}
