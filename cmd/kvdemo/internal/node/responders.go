// Copyright 2026 The Weft Authors
// SPDX-License-Identifier: Apache-2.0

package node

import (
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"slices"
	"strings"
	"time"
	"unicode/utf8"

	"google.golang.org/grpc/codes"
	"google.golang.org/grpc/status"

	"github.com/weftraft/weft/cmd/kvdemo/kvpb"
	"github.com/weftraft/weft/internal/members"
	"github.com/weftraft/weft/leases"
	"github.com/weftraft/weft/raft"
)

// wish is who operators want to answer reads by roster leases, in all groups. It is a
// system key of group 1, so any node takes it, and every leader goes by it, also after
// all nodes were restarted.
type wish struct {
	Retired bool          `json:"retired,omitempty"`
	Wanted  []leases.Want `json:"wanted,omitempty"` // ascending, disjoint
	// Tuner is a mode's text; empty: the flag --lease-tuner of each node counts.
	Tuner string `json:"tuner,omitempty"`
}

func parseWish(text string) (*wish, error) {
	w := &wish{}
	err := json.Unmarshal([]byte(text), w)
	if err == nil {
		_, err = w.tuner()
	}
	return w, err
}

// tuner returns the word about the tuner.
func (w *wish) tuner() (leases.TunerMode, error) {
	if w.Tuner == "" {
		return leases.TunerConfigured, nil
	}
	return leases.ParseTunerMode(w.Tuner)
}

// check returns what leases have against the wish.
func (w *wish) check() error {
	return leases.Config{ID: 1, Boot: 1, ElectionTimeout: time.Second, Wanted: w.Wanted}.Validate()
}

// name wants nodes for a span, in place of those that there are for it.
func (w *wish) name(span leases.Span, nodes []leases.NodeID) error {
	w.Wanted = slices.DeleteFunc(w.Wanted, func(o leases.Want) bool { return o.Span == span })
	if !utf8.ValidString(span.Start) || !utf8.ValidString(span.End) {
		return fmt.Errorf("span %v is not UTF-8, as keys are", span)
	}
	w.Wanted = append(w.Wanted, leases.Want{Span: span, Nodes: nodes})
	slices.SortFunc(w.Wanted, func(a, b leases.Want) int { return strings.Compare(a.Span.Start, b.Span.Start) })
	if err := w.check(); err != nil {
		return fmt.Errorf("%w; if spans overlap, unname one of them first", err)
	}
	return nil
}

// unname removes nodes from the wish for a span: nil stands for all spans, and no nodes for all nodes.
func (w *wish) unname(span *leases.Span, nodes []leases.NodeID) (found bool) {
	var rest []leases.Want
	for _, o := range w.Wanted {
		if span == nil || o.Span == *span {
			before := len(o.Nodes)
			o.Nodes = slices.DeleteFunc(slices.Clone(o.Nodes), func(id leases.NodeID) bool { return len(nodes) == 0 || slices.Contains(nodes, id) })
			found = found || len(o.Nodes) < before
		}
		if len(o.Nodes) > 0 {
			rest = append(rest, o)
		}
	}
	w.Wanted = rest
	return found
}

// toldWish is the wish that the leader of a group at this node has heard, and the term in which it heard.
type toldWish struct {
	term uint64
	text string
}

// tellWish tells each leader at this node which responders are wanted, once in each term, and
// again after the wish has changed.
func (n *node) tellWish(ctx context.Context, t table) {
	if t.wish == nil || !n.cfg.Leases {
		return
	}
	for _, g := range n.groups {
		s := g.host.Status()
		now := toldWish{s.Term, t.wishText}
		if s.Role != raft.StateLeader || g.told == now {
			continue
		}
		mode, err := t.wish.tuner()
		if err == nil {
			err = g.host.SetResponders(ctx, t.wish.Wanted, mode)
		}
		if err == nil {
			err = g.host.RetireLeases(ctx, t.wish.Retired)
		}
		switch {
		case err == nil:
			g.told = now
		case ctx.Err() == nil && !errors.Is(err, leases.ErrNotLeader):
			n.cfg.Log.Warn("tell the leader who is to be a responder", "group", g.id, "error", err)
		}
	}
}

// NameResponders implements kvpb.AdminServer.
func (a *admin) NameResponders(ctx context.Context, req *kvpb.NameRespondersRequest) (*kvpb.RespondersResponse, error) {
	nodes := nodeIDs(req.GetNodes())
	if len(nodes) == 0 {
		return nil, status.Error(codes.InvalidArgument, "nodes: none, want a member or several")
	}
	return a.wish(ctx, func(w *wish) error {
		for _, id := range nodes {
			if !a.isMember(uint64(id)) {
				return status.Errorf(codes.NotFound, "node %d is no member", id)
			}
		}
		span := fromSpan(req.GetSpan())
		if err := w.name(span, nodes); err != nil {
			return status.Error(codes.InvalidArgument, err.Error())
		}
		return nil
	})
}

// UnnameResponders implements kvpb.AdminServer.
func (a *admin) UnnameResponders(ctx context.Context, req *kvpb.UnnameRespondersRequest) (*kvpb.RespondersResponse, error) {
	return a.wish(ctx, func(w *wish) error {
		var span *leases.Span
		if req.GetSpan() != nil {
			s := fromSpan(req.GetSpan())
			span = &s
		}
		if !w.unname(span, nodeIDs(req.GetNodes())) && (span != nil || len(req.GetNodes()) > 0) {
			return status.Error(codes.NotFound, "there is nobody of these that is wanted as a responder")
		}
		return nil
	})
}

// RetireLeases implements kvpb.AdminServer.
func (a *admin) RetireLeases(ctx context.Context, req *kvpb.RetireLeasesRequest) (*kvpb.RespondersResponse, error) {
	return a.wish(ctx, func(w *wish) error {
		w.Retired = !req.GetResume()
		return nil
	})
}

// SwitchTuner implements kvpb.AdminServer.
func (a *admin) SwitchTuner(ctx context.Context, req *kvpb.SwitchTunerRequest) (*kvpb.RespondersResponse, error) {
	if req.GetMode() < kvpb.TunerMode_TUNER_OFF || req.GetMode() > kvpb.TunerMode_TUNER_ON {
		return nil, status.Errorf(codes.InvalidArgument, "mode: %v, want TUNER_OFF, TUNER_WATCH or TUNER_ON", req.GetMode())
	}
	return a.wish(ctx, func(w *wish) error {
		w.Tuner = leases.TunerMode(req.GetMode()).String()
		return nil
	})
}

// wish changes the wish, and returns the one there is then.
func (a *admin) wish(ctx context.Context, change func(*wish) error) (*kvpb.RespondersResponse, error) {
	if !a.n.cfg.Leases {
		return nil, status.Error(codes.FailedPrecondition, "this node runs without roster leases: start all nodes with --leases")
	}
	ctx, cancel := withMargin(ctx)
	defer cancel()
	if err := a.n.await(ctx); err != nil {
		return nil, err
	}
	for {
		t, err := a.table(ctx)
		if err != nil {
			return nil, toStatus(unseen("read the wish", err))
		}
		w := wish{}
		if t.wish != nil {
			w = *t.wish
		}
		if err := change(&w); err != nil {
			return nil, err
		}
		text, err := json.Marshal(w)
		if err != nil {
			return nil, err
		}
		ok, err := a.n.setSystem(ctx, respondersKey, t.wishText, string(text))
		if err != nil {
			return nil, toStatus(err)
		}
		if ok {
			mode, err := w.tuner()
			return &kvpb.RespondersResponse{Wanted: assignments(w.Wanted), Retired: w.Retired, Tuner: kvpb.TunerMode(mode)}, err
		}
	} // somebody else was first
}

// isMember reports whether a node is a member of all groups.
func (a *admin) isMember(id uint64) bool {
	return !slices.ContainsFunc(a.n.groups, func(g *group) bool { return !members.Has(g.host.Status().Members, id) })
}

// nodeIDs returns ids in ascending order, each once.
func nodeIDs(ids []uint64) (nodes []leases.NodeID) {
	for _, id := range ids {
		nodes = append(nodes, leases.NodeID(id))
	}
	slices.Sort(nodes)
	return slices.Compact(nodes)
}

func fromSpan(s *kvpb.Span) leases.Span {
	return leases.Span{Start: string(s.GetStart()), End: string(s.GetEnd())}
}
