// Copyright 2026 The Weft Authors
// SPDX-License-Identifier: Apache-2.0

package node

import (
	"context"
	"errors"
	"fmt"
	"maps"
	"slices"
	"time"

	"golang.org/x/sync/errgroup"
	"google.golang.org/grpc/codes"
	"google.golang.org/grpc/status"

	pb "go.etcd.io/raft/v3/raftpb"

	"github.com/weftraft/weft"
	"github.com/weftraft/weft/cmd/kvdemo/internal/client"
	"github.com/weftraft/weft/cmd/kvdemo/kvpb"
	"github.com/weftraft/weft/internal/members"
	"github.com/weftraft/weft/raft"
	"github.com/weftraft/weft/rawnode"
)

// admin answers operators. A change of the members is a row of steps, each of
// which is left out if it is done already: so one that was cut short, by the
// deadline or the end of this node, goes on when it is asked for again.
type admin struct {
	kvpb.UnimplementedAdminServer
	n *node
	// turn has room for one: changes at one node come one after the other.
	// Those at several nodes may cross, and then fail or wait for each other.
	turn chan struct{}
}

// retryPause is between attempts at a step that others may be in the way of.
const retryPause = 50 * time.Millisecond

// Members implements kvpb.AdminServer.
func (a *admin) Members(ctx context.Context, _ *kvpb.MembersRequest) (*kvpb.MembersResponse, error) {
	ctx, cancel := withMargin(ctx)
	defer cancel()
	return a.list(ctx)
}

// AddMember implements kvpb.AdminServer.
func (a *admin) AddMember(ctx context.Context, req *kvpb.AddMemberRequest) (*kvpb.MembersResponse, error) {
	id, address := req.GetId(), req.GetAddress()
	if err := client.CheckAddress(address); err != nil {
		return nil, status.Error(codes.InvalidArgument, err.Error())
	}
	return a.change(ctx, id, func(ctx context.Context) error {
		if slices.Contains(a.removed(), id) {
			return status.Errorf(codes.FailedPrecondition, "node %d was removed, and nobody may come back under its id: choose another", id)
		}
		if at := a.n.weft.Addresses()[id]; at != address && slices.Contains(a.members(), id) {
			return status.Errorf(codes.AlreadyExists, "node %d is there already, at %s", id, at)
		}
		for _, g := range a.n.groups {
			if err := g.change(ctx, func(now *pb.ConfState) error {
				if members.Has(now, id) {
					return nil
				}
				return g.weft.AddLearner(ctx, id, address)
			}); err != nil {
				return err
			}
		}
		if req.GetLearner() {
			return nil
		}
		return a.promote(ctx, id)
	})
}

// PromoteMember implements kvpb.AdminServer.
func (a *admin) PromoteMember(ctx context.Context, req *kvpb.PromoteMemberRequest) (*kvpb.MembersResponse, error) {
	return a.change(ctx, req.GetId(), func(ctx context.Context) error {
		if err := a.known(ctx, req.GetId()); err != nil {
			return err
		}
		return a.promote(ctx, req.GetId())
	})
}

// promote makes a learner a voter of each group, as soon as it has caught up.
func (a *admin) promote(ctx context.Context, id uint64) error {
	for _, g := range a.n.groups {
		err := g.change(ctx, func(*pb.ConfState) error { return g.weft.Promote(ctx, id) })
		if errors.Is(err, rawnode.ErrUnsafeChange) {
			return fmt.Errorf("node %d stays a learner of group %d: %w; is it running (serve --join)? Ask again when it is", id, g.id, err)
		}
		if err != nil {
			return err
		}
	}
	return nil
}

// RemoveMember implements kvpb.AdminServer.
func (a *admin) RemoveMember(ctx context.Context, req *kvpb.RemoveMemberRequest) (*kvpb.MembersResponse, error) {
	id := req.GetId()
	if id == a.n.cfg.ID {
		if voters := a.n.groups[0].host.Status().Members.GetVoters(); len(voters) == 1 && voters[0] == id {
			return nil, refusal(codes.FailedPrecondition, fmt.Sprintf("node %d is the only voter, and a cluster keeps one: add another first, or stop this node to end the cluster", id))
		}
		return nil, refusal(codes.Unavailable, "a node does not remove itself: ask another one")
	}
	return a.change(ctx, id, func(ctx context.Context) error {
		if err := a.known(ctx, id); err != nil {
			return err
		}
		// Group 1, by which nodes hear of each other's addresses, comes last.
		for _, g := range slices.Backward(a.n.groups) {
			if err := g.change(ctx, func(now *pb.ConfState) error {
				switch {
				case !members.Has(now, id):
					return nil
				case req.GetForce():
					return g.weft.ForceRemove(ctx, id)
				}
				return g.weft.Remove(ctx, id)
			}); err != nil {
				return err
			}
		}
		return nil
	})
}

// Transfer implements kvpb.AdminServer.
func (a *admin) Transfer(ctx context.Context, req *kvpb.TransferRequest) (*kvpb.TransferResponse, error) {
	if int(req.GetGroup()) > len(a.n.groups) {
		return nil, status.Errorf(codes.InvalidArgument, "group %d: want 1 to %d, or 0 for all", req.GetGroup(), len(a.n.groups))
	}
	ctx, cancel := withMargin(ctx)
	defer cancel()
	for _, g := range a.n.groups {
		if req.GetGroup() != 0 && req.GetGroup() != g.id {
			continue
		}
		if err := g.host.TransferLeader(ctx, req.GetTo()); err != nil {
			return nil, toStatus(fmt.Errorf("group %d: %w", g.id, err))
		}
	}
	return &kvpb.TransferResponse{}, nil
}

// Snapshot implements kvpb.AdminServer.
func (a *admin) Snapshot(context.Context, *kvpb.SnapshotRequest) (*kvpb.SnapshotResponse, error) {
	if err := a.n.flushNow(); err != nil {
		return nil, toStatus(err)
	}
	resp := &kvpb.SnapshotResponse{LogBytes: uint64(a.n.weft.Engine().Stats().SegmentBytes)}
	for _, g := range a.n.groups {
		durable, err := g.store.Durable()
		if err != nil {
			return nil, toStatus(err)
		}
		first, err := g.log.FirstIndex()
		if err != nil {
			return nil, toStatus(err)
		}
		resp.Groups = append(resp.Groups, &kvpb.SnapshotResponse_Group{Id: g.id, Durable: durable, FirstIndex: first})
	}
	return resp, nil
}

// change makes a change of the members in its turn, from the members as they are now.
func (a *admin) change(ctx context.Context, id uint64, do func(context.Context) error) (*kvpb.MembersResponse, error) {
	if id == raft.None || id > weft.MaxID {
		return nil, status.Errorf(codes.InvalidArgument, "node id %d: want 1 to %d", id, uint64(weft.MaxID))
	}
	ctx, cancel := withMargin(ctx)
	defer cancel()
	select {
	case a.turn <- struct{}{}:
		defer func() { <-a.turn }()
	case <-ctx.Done():
		return nil, refusal(codes.DeadlineExceeded, "another change of the members is under way at this node")
	}
	if err := a.n.await(ctx); err != nil {
		return nil, err
	}
	if err := do(ctx); err != nil {
		return nil, toStatus(err)
	}
	return a.list(ctx)
}

// table returns what the table is now, at all nodes.
func (a *admin) table(ctx context.Context) (table, error) {
	if _, err := a.n.groups[0].host.Read(ctx); err != nil {
		return table{}, err
	}
	return a.n.readTable()
}

// known returns an error if the cluster never had a node of this id. It first catches up, because a node that
// joins knows no members yet.
func (a *admin) known(ctx context.Context, id uint64) error {
	if err := a.catchUp(ctx); err != nil {
		return err
	}
	if slices.Contains(a.members(), id) || slices.Contains(a.removed(), id) {
		return nil
	}
	return status.Errorf(codes.NotFound, "node %d is no member: the members are %v", id, a.members())
}

// catchUp waits until this node has all groups as of now.
func (a *admin) catchUp(ctx context.Context) error {
	var reads errgroup.Group
	for _, g := range a.n.groups {
		reads.Go(func() error {
			_, err := g.host.Read(ctx)
			return err
		})
	}
	return reads.Wait()
}

// members returns the members of all groups, ascending.
func (a *admin) members() (ids []uint64) {
	for _, g := range a.n.groups {
		ids = append(ids, members.IDs(g.host.Status().Members)...)
	}
	return members.Sorted(ids)
}

// removed returns the ids that do not come back, ascending.
func (a *admin) removed() (ids []uint64) {
	for _, g := range a.n.groups {
		ids = append(ids, g.weft.Removed()...)
	}
	return members.Sorted(ids)
}

// change has a group's members changed as they are now. It goes on after a change of the leader, and
// while others change members, up to the deadline.
func (g *group) change(ctx context.Context, next func(now *pb.ConfState) error) (err error) {
	for {
		if _, readErr := g.host.Read(ctx); readErr != nil {
			if err == nil {
				err = readErr
			}
			return fmt.Errorf("group %d: %w", g.id, err)
		}
		if err = next(g.host.Status().Members); err == nil || !passing(err) {
			return err
		}
		select {
		case <-ctx.Done():
			return errors.Join(err, ctx.Err())
		case <-time.After(retryPause):
		}
	}
}

// passing reports whether a change that failed may succeed later: one that does not fit the members has
// come behind another change, and next looks again.
func passing(err error) bool {
	final := []error{rawnode.ErrUnsafeChange, rawnode.ErrStopped, rawnode.ErrFailed, rawnode.ErrNotMember, weft.ErrRemoved, weft.ErrAddress, weft.ErrInvalid}
	return !slices.ContainsFunc(final, func(target error) bool { return errors.Is(err, target) })
}

// list describes the members as they are now.
func (a *admin) list(ctx context.Context) (*kvpb.MembersResponse, error) {
	if err := a.catchUp(ctx); err != nil {
		return nil, toStatus(err)
	}
	rows := map[uint64]*memberRow{}
	for _, g := range a.n.groups {
		s := g.host.Status()
		for id, p := range s.Progress {
			row := rowOf(rows, id)
			row.lags(s.LastIndex, p.Match)
			row.silent = row.silent || !p.RecentActive
			row.logLost = row.logLost || p.LogLost
		}
		if s.Lead != raft.None {
			row := rowOf(rows, s.Lead)
			row.leads = append(row.leads, g.id)
		}
		for _, id := range s.Members.GetVoters() {
			rowOf(rows, id).voter++
		}
		for _, id := range s.Members.GetLearners() {
			rowOf(rows, id).learner++
		}
	}
	addresses := a.n.weft.Addresses()
	resp := &kvpb.MembersResponse{Removed: a.removed()}
	for _, id := range slices.Sorted(maps.Keys(rows)) {
		row := rows[id]
		resp.Members = append(resp.Members, &kvpb.MembersResponse_Member{
			Id: id, Address: addresses[id], Role: row.role(len(a.n.groups)), Leads: row.leads, Behind: row.behind, Silent: row.silent, LogLost: row.logLost,
		})
	}
	return resp, nil
}

// memberRow is what the groups say of a node.
type memberRow struct {
	voter, learner int // of how many groups
	leads          []uint64
	behind         *uint64
	silent         bool // a leader here does not hear from it
	logLost        bool // a leader here knows that it has lost its log
}

func rowOf(rows map[uint64]*memberRow, id uint64) *memberRow {
	if rows[id] == nil {
		rows[id] = &memberRow{}
	}
	return rows[id]
}

// lags notes how far behind a leader's log the node is.
func (r *memberRow) lags(last, match uint64) {
	if lag := last - min(last, match); r.behind == nil || lag > *r.behind {
		r.behind = &lag
	}
}

// role puts the node's parts in all groups in a word.
func (r *memberRow) role(groups int) string {
	switch {
	case r.voter == groups:
		return "voter"
	case r.learner == groups:
		return "learner"
	case r.voter+r.learner == groups:
		return "becoming a voter"
	case r.voter+r.learner == 0:
		return "no member"
	}
	return "joining or leaving"
}
