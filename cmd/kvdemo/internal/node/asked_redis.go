// Copyright 2026 The Weft Authors
// SPDX-License-Identifier: Apache-2.0

package node

import (
	"context"
	"crypto/sha256"
	"errors"
	"fmt"
	"strconv"
	"time"

	"google.golang.org/protobuf/types/known/wrapperspb"

	"github.com/weftraft/weft/cmd/kvdemo/internal/kv"
	"github.com/weftraft/weft/cmd/kvdemo/internal/resp"
	"github.com/weftraft/weft/cmd/kvdemo/kvpb"
	"github.com/weftraft/weft/rawnode"
)

// group returns a group, if there is one.
func (s *service) group(id uint64) (replicated, error) {
	if id < 1 || id > uint64(len(s.groups)) {
		return nil, fmt.Errorf("%w group %d, want 1 to %d", kv.ErrInvalid, id, len(s.groups))
	}
	return s.groups[id-1], nil
}

// fresh returns the state of a group behind a read barrier.
func (s *service) fresh(ctx context.Context, group uint64) (*kv.Store, error) {
	g, err := s.group(group)
	if err != nil {
		return nil, err
	}
	_, err = s.barrier(ctx, readRequest{}, g)
	return g.state(), err
}

func (s *service) look(ctx context.Context, b *wrapperspb.BytesValue) (*wrapperspb.BytesValue, error) {
	actions, err := kv.DecodeActions(b.GetValue())
	if err != nil {
		return nil, err
	}
	group, err := groupOf(&kv.Txn{Then: actions}, len(s.groups))
	if err != nil {
		return nil, err
	}
	state, err := s.fresh(ctx, group)
	if err != nil {
		return nil, err
	}
	results, err := state.Look(actions)
	return wrapperspb.Bytes(kv.EncodeResults(results)), err
}

func (s *service) condition(ctx context.Context, req *kvpb.GetRequest) (*kvpb.Compare, error) {
	state, err := s.fresh(ctx, s.groupOf(req.GetKey()))
	if err != nil {
		return nil, err
	}
	c, err := state.Condition(req.GetKey())
	if err != nil {
		return nil, err
	}
	if c.Kind == kv.CompareAbsent {
		return &kvpb.Compare{Want: &kvpb.Compare_Exists{}}, nil
	}
	return &kvpb.Compare{Want: &kvpb.Compare_Sha256{Sha256: c.SHA256[:]}}, nil
}

func (s *service) changed(ctx context.Context, c *kvpb.Compare) (*kvpb.Compare, error) {
	state, err := s.fresh(ctx, s.groupOf(c.GetKey()))
	if err != nil {
		return nil, err
	}
	return &kvpb.Compare{Want: &kvpb.Compare_Exists{Exists: state.Changed(c.GetKey(), c.GetChangedAfter())}}, nil
}

func (s *service) revisionOf(ctx context.Context, p *kvpb.Position) (*kvpb.Position, error) {
	state, err := s.fresh(ctx, p.GetGroup())
	if err != nil {
		return nil, err
	}
	return &kvpb.Position{Group: p.GetGroup(), Revision: state.Revision()}, nil
}

// events returns events as soon as there are some, or none after watchWait.
func (s *service) events(ctx context.Context, p *kvpb.Position) (*kvpb.GetResponse, error) {
	g, err := s.group(p.GetGroup())
	if err != nil {
		return nil, err
	}
	done, err := s.waits()
	if err != nil {
		return nil, err
	}
	defer done()
	state, next := g.state(), p.GetRevision()
	wait := time.NewTimer(watchWait)
	defer wait.Stop()
	for {
		events, following, more, err := state.Events(next, watchPage)
		if err != nil {
			return nil, err
		}
		if next = following; len(events) > 0 {
			return &kvpb.GetResponse{Value: kv.EncodeEvents(events), Revision: next}, nil
		}
		if more == nil {
			more = closed
		}
		select {
		case <-more:
		case <-wait.C:
			return &kvpb.GetResponse{Revision: next}, nil
		case <-ctx.Done():
			return nil, ctx.Err()
		case <-s.watches.ending:
			return nil, errWatchEnded
		}
	}
}

func (s *service) countAsked(ctx context.Context, _ *kvpb.StatusRequest) (*kvpb.Position, error) {
	n, err := s.count(ctx)
	return &kvpb.Position{Revision: uint64(n)}, err
}

// count counts the keys of all groups behind a read barrier.
func (s *service) count(ctx context.Context) (n int64, err error) {
	if _, err := s.barrier(ctx, readRequest{}, s.groups...); err != nil {
		return 0, err
	}
	for _, g := range s.groups {
		some, err := g.state().Count(ctx)
		if err != nil {
			return 0, err
		}
		n += some
	}
	return n, nil
}

// gateBackend is the resp.Backend of a gateway, whose questions have read barriers of their own.
type gateBackend struct{ *gateway }

// Groups implements resp.Backend.
func (b gateBackend) Groups() int { return len(b.groups) }

// Barrier implements resp.Backend.
func (b gateBackend) Barrier(context.Context, ...uint64) error { return nil }

// List implements resp.Backend.
func (b gateBackend) List(ctx context.Context, q kv.Query) (kv.Page, error) {
	found, err := b.gateway.List(ctx, &kvpb.ListRequest{Prefix: q.Prefix, After: q.After, Limit: uint32(q.Limit)})
	page := kv.Page{Next: found.GetNext()}
	for _, item := range found.GetItems() {
		page.Items = append(page.Items, kv.Item{Key: item.GetKey(), Size: int64(item.GetSize())})
	}
	return page, err
}

// Count implements resp.Backend.
func (b gateBackend) Count(ctx context.Context) (int64, error) {
	var n kvpb.Position
	err := b.ask(ctx, askCount, &kvpb.StatusRequest{}, &n)
	return int64(n.GetRevision()), err
}

// Info implements resp.Backend.
func (b gateBackend) Info() [][2]string {
	at := b.groups[0].Gateway().Status()
	number := func(v uint64) string { return strconv.FormatUint(v, 10) }
	return [][2]string{
		{"node", number(b.cfg.ID)}, {"cluster", number(b.cfg.Cluster)}, {"groups", strconv.Itoa(len(b.groups))}, {"group1_role", "gateway"},
		{"group1_leader", number(at.Lead)}, {"group1_term", number(at.Term)}, {"uptime_ms", number(uint64(time.Since(b.started).Milliseconds()))},
	}
}

// askedState is the state of a group, as nodes tell of it.
type askedState struct {
	*gateway
	group uint64
}

// Look implements resp.State.
func (s askedState) Look(ctx context.Context, actions []kv.Action) ([]kv.ActionResult, error) {
	b, err := kv.EncodeActions(actions)
	if err != nil {
		return nil, err
	}
	var found wrapperspb.BytesValue
	if err := s.ask(ctx, askLook, wrapperspb.Bytes(b), &found); err != nil {
		return nil, err
	}
	return kv.DecodeResults(found.GetValue(), len(actions))
}

// Condition implements resp.State.
func (s askedState) Condition(ctx context.Context, key string) (kv.Compare, error) {
	var found kvpb.Compare
	c := kv.Compare{Kind: kv.CompareAbsent, Key: key}
	if err := s.ask(ctx, askCondition, &kvpb.GetRequest{Key: key}, &found); err != nil {
		return c, err
	}
	if digest := found.GetSha256(); len(digest) == sha256.Size {
		c.Kind, c.SHA256 = kv.CompareDigest, [sha256.Size]byte(digest)
	}
	return c, nil
}

// Changed implements resp.State.
func (s askedState) Changed(ctx context.Context, key string, since uint64) (bool, error) {
	var found kvpb.Compare
	err := s.ask(ctx, askChanged, &kvpb.Compare{Key: key, Want: &kvpb.Compare_ChangedAfter{ChangedAfter: since}}, &found)
	return found.GetExists(), err
}

// Revision implements resp.State.
func (s askedState) Revision(ctx context.Context) (uint64, error) {
	var found kvpb.Position
	err := s.ask(ctx, askRevision, &kvpb.Position{Group: s.group}, &found)
	return found.GetRevision(), err
}

// Events implements resp.State. The node has waited already when there are none.
func (s askedState) Events(ctx context.Context, from uint64, _ int) ([]kv.Event, uint64, <-chan struct{}, error) {
	var found kvpb.GetResponse
	if another, err := s.poll(ctx, askEvents, &kvpb.Position{Group: s.group, Revision: from}, &found); another || err != nil {
		return nil, from, nil, err
	}
	events, err := kv.DecodeEvents(found.GetValue())
	return events, found.GetRevision(), nil, err
}

// State implements resp.Backend.
func (b gateBackend) State(group uint64) resp.State { return askedState{b.gateway, group} }

// toldUnknown marks the error of a write that may take effect.
func toldUnknown(err error) error {
	var call *rawnode.CallError
	if errors.As(err, &call) && !errors.Is(call, rawnode.ErrRefused) {
		return unknownOutcome{err}
	}
	return err
}
