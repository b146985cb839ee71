// Copyright 2026 The Weft Authors
// SPDX-License-Identifier: Apache-2.0

package node

import (
	"context"
	"crypto/sha256"
	"fmt"
	"time"

	"google.golang.org/grpc/codes"
	"google.golang.org/grpc/status"

	"github.com/weftraft/weft/cmd/kvdemo/internal/kv"
	"github.com/weftraft/weft/cmd/kvdemo/kvpb"
)

// maxTTL bounds what a client may ask for: a hundred years.
const maxTTL = 100 * 365 * 24 * time.Hour

// Txn implements kvpb.KVServer.
func (s *writes) Txn(ctx context.Context, req *kvpb.TxnRequest) (*kvpb.TxnResponse, error) {
	x, err := toTxn(req, time.Now())
	if err != nil {
		return nil, toStatus(err)
	}
	group, err := groupOf(x, len(s.proposers))
	if err != nil {
		return nil, toStatus(err)
	}
	index, r, err := s.transact(ctx, group, kv.Command{Op: kv.OpTxn, Txn: x}, req.GetSession())
	if err != nil {
		return nil, toStatus(err)
	}
	resp := &kvpb.TxnResponse{Index: index, Succeeded: r.Txn.Succeeded, Forgotten: r.Txn.Forgotten}
	resp.Position = written(group, r)
	for _, a := range r.Txn.Actions {
		resp.Results = append(resp.Results, &kvpb.TxnResponse_Result{
			Code: kvpb.TxnResponse_Result_Code(a.Code), Existed: a.Existed, Number: a.Number, Value: a.Value,
		})
	}
	deadlines(resp, req)
	return resp, nil
}

// transact replicates a transaction in a group.
func (s *writes) transact(ctx context.Context, group uint64, c kv.Command, in *kvpb.Session) (uint64, kv.Result, error) {
	ctx, cancel := withMargin(ctx)
	defer cancel()
	if err := s.await(ctx); err != nil {
		return 0, kv.Result{}, err
	}
	if err := s.inSession(ctx, &c, in); err != nil {
		return 0, kv.Result{}, err
	}
	if _, err := c.Checked(); err != nil {
		return 0, kv.Result{}, err
	}
	if err := s.enable(ctx, group, c.Txn.Level()); err != nil {
		return 0, kv.Result{}, err
	}
	return s.proposers[group-1].propose(ctx, c)
}

// groupOf returns the group of all keys of a transaction.
func groupOf(x *kv.Txn, groups int) (group uint64, err error) {
	first := ""
	for key := range x.Keys {
		switch g := kv.GroupOf(key, groups); {
		case group == 0:
			group, first = g, key
		case g != group:
			return 0, fmt.Errorf("%w transaction: key %q is in group %d and key %q in group %d, want keys of one group", kv.ErrInvalid, first, group, key, g)
		}
	}
	if group == 0 {
		return 0, fmt.Errorf("%w transaction: it names no key, want a comparison or an action", kv.ErrInvalid)
	}
	return group, nil
}

// deadlines moves the numbers of TTL to their own field.
func deadlines(resp *kvpb.TxnResponse, req *kvpb.TxnRequest) {
	actions := req.GetOtherwise()
	if resp.GetSucceeded() {
		actions = req.GetThen()
	}
	for i, r := range resp.GetResults() {
		if i < len(actions) && actions[i].GetKind() == kvpb.Action_TTL {
			r.DeadlineMs, r.Number = r.GetNumber(), 0
		}
	}
}

// toTxn reads a transaction. Times to live become deadlines by the time now.
func toTxn(req *kvpb.TxnRequest, now time.Time) (*kv.Txn, error) {
	x := &kv.Txn{}
	for _, c := range req.GetCompares() {
		out := kv.Compare{Key: c.GetKey()}
		switch want := c.GetWant().(type) {
		case *kvpb.Compare_Exists:
			out.Kind = kv.CompareAbsent
			if want.Exists {
				out.Kind = kv.ComparePresent
			}
		case *kvpb.Compare_Value:
			out = kv.CompareValue(c.GetKey(), want.Value)
		case *kvpb.Compare_Sha256:
			if len(want.Sha256) != sha256.Size {
				return nil, status.Errorf(codes.InvalidArgument, "comparison of key %q: sha256 of %d bytes, want %d", c.GetKey(), len(want.Sha256), sha256.Size)
			}
			out.Kind, out.SHA256 = kv.CompareDigest, [sha256.Size]byte(want.Sha256)
		case *kvpb.Compare_Revision:
			out.Kind, out.Revision = kv.CompareRevision, want.Revision
		case *kvpb.Compare_ChangedAfter:
			out.Kind, out.Revision = kv.CompareChanged, want.ChangedAfter
		default:
			return nil, status.Errorf(codes.InvalidArgument, "comparison of key %q: it wants nothing, want exists, value, sha256, revision or changed_after", c.GetKey())
		}
		x.Compares = append(x.Compares, out)
	}
	var err error
	if x.Then, err = toActions(req.GetThen(), now); err == nil {
		x.Else, err = toActions(req.GetOtherwise(), now)
	}
	return x, err
}

func toActions(list []*kvpb.Action, now time.Time) (actions []kv.Action, err error) {
	for _, a := range list {
		if _, known := kvpb.Action_Kind_name[int32(a.GetKind())]; !known {
			return nil, status.Errorf(codes.InvalidArgument, "action on key %q: kind %d, want one that kv.proto names", a.GetKey(), a.GetKind())
		}
		out := kv.Action{Kind: kv.ActionKind(a.GetKind()), Key: a.GetKey(), Value: a.GetValue(), Delta: a.GetDelta()}
		switch a.GetCondition() {
		case kvpb.Action_ALWAYS:
		case kvpb.Action_ABSENT:
			out.Flags |= kv.IfAbsent
		case kvpb.Action_PRESENT:
			out.Flags |= kv.IfPresent
		default:
			return nil, status.Errorf(codes.InvalidArgument, "action on key %q: condition %d, want 0 to 2", a.GetKey(), a.GetCondition())
		}
		if a.GetKeepDeadline() {
			out.Flags |= kv.KeepDeadline
		}
		if a.GetReturnOld() {
			out.Flags |= kv.ReturnOld
		}
		if out.Deadline, err = deadlineOf(a.GetTtlMs(), now); err != nil {
			return nil, err
		}
		actions = append(actions, out)
	}
	return actions, nil
}

// deadlineOf returns the deadline of a key that is to live for so long; 0: for good.
func deadlineOf(ms uint64, now time.Time) (int64, error) {
	if ms == 0 {
		return 0, nil
	}
	if ms > uint64(maxTTL.Milliseconds()) {
		return 0, status.Errorf(codes.InvalidArgument, "time to live: %d ms, want at most %d (a hundred years), or 0 for no deadline", ms, maxTTL.Milliseconds())
	}
	return now.UnixMilli() + int64(ms), nil
}
