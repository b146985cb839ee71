// Copyright 2026 The Weft Authors
// SPDX-License-Identifier: Apache-2.0

package node

import (
	"context"
	"errors"
	"fmt"
	"net/http"
	"os"
	"slices"
	"strconv"
	"sync"
	"time"

	pb "go.etcd.io/raft/v3/raftpb"

	"github.com/weftraft/weft/cmd/kvdemo/internal/page"
	"github.com/weftraft/weft/internal/shaping"
	"github.com/weftraft/weft/raft"
	"github.com/weftraft/weft/rawnode"
	"github.com/weftraft/weft/rawnode/transport"
)

// pageServer returns what serves the page, and the collector behind it, which serveWeb
// runs: this node, and the nodes of --http-peers.
func (n *node) pageServer() (http.Handler, *page.Collector) {
	sources := []page.Source{{ID: n.cfg.ID, Read: n.report}}
	for id, address := range n.cfg.HTTPPeers {
		if id != n.cfg.ID {
			sources = append(sources, page.Peer(id, address))
		}
	}
	c := page.NewCollector(n.cfg.ID, sources)
	return page.Handler(page.Config{Own: n.report, Collector: c}), c
}

// report makes the node's report about a group.
func (n *node) report(_ context.Context, ask page.Ask) (*page.Node, error) {
	if ask.Group < 1 || ask.Group > uint64(len(n.groups)) {
		return nil, fmt.Errorf("group: %d, want 1 to %d", ask.Group, len(n.groups))
	}
	g := n.groups[ask.Group-1]
	s := g.host.Status()
	r := &page.Node{
		ID: n.cfg.ID, Cluster: n.cfg.Cluster, Core: n.cfg.Core, PID: os.Getpid(), UptimeMs: time.Since(n.started).Milliseconds(),
		Group: g.id, Groups: len(n.groups), Role: role(s.Role), Leader: s.Lead, Term: s.Term,
		Commit: s.Commit, Applied: g.store.Applied(), Last: s.LastIndex,
		Voters: slices.Clone(s.Members.GetVoters()), Learners: slices.Clone(s.Members.GetLearners()),
		Addresses: map[uint64]string{}, Links: reportLinks(n.weft.Transport().Stats(), n.shapes.get), Leases: reportLeases(s.Leases), Served: reportServed(s.Counters),
		Writes: g.writes.Load(), Reads: g.readTimes.Load(),
		Sent: s.Counters.SnapshotsSent, Taken: s.Counters.SnapshotsInstalled,
		Failed: s.Counters.SnapshotsFailed + s.Counters.RestoresFailed, Stalls: s.Counters.Stalls, Weight: s.Weight,
	}
	if slices.Contains(r.Learners, r.ID) {
		r.Role = "learner"
	}
	r.First, _ = g.log.FirstIndex()
	for _, seen := range n.placement.Seen() {
		if seen.Node == r.ID {
			r.SyncUs = uint64(seen.Health.Sync / time.Microsecond)
		}
	}
	if err := errors.Join(s.Stalled, n.db.Stalled()); err != nil {
		r.Stalled = page.Text(err.Error())
	}
	for id, p := range s.Progress {
		if p.LogLost {
			r.LostLogs = append(r.LostLogs, id)
		}
	}
	slices.Sort(r.LostLogs)
	addresses := n.weft.Addresses()
	for _, id := range append(slices.Clone(r.Voters), r.Learners...) {
		if a := addresses[id]; a != "" && len(r.Addresses) < page.MaxMembers {
			r.Addresses[id] = a
		}
	}
	if c := s.Coding; c != nil {
		r.Coding = &page.Coding{
			Policy: n.policy.name(), Active: c.Active, Completed: c.Completed, StuckAt: c.StuckAt,
			Delayed: c.Counters.Delayed, DelayUs: uint64(c.Counters.Delays / time.Microsecond),
			Pushed: c.Counters.PushedBytes, Joined: c.Counters.CompletedBytes, Memory: c.Memory,
		}
		if c.Plain {
			r.Coding.Policy = page.PolicyWhole
		}
		r.Entries = g.recent.list(n.cfg.ID, g.log, min(ask.UpTo, s.LastIndex), c)
	}
	return r, nil
}

// reportLinks adds up the classes of messages of each link. shape, unless nil, returns a link's shape.
func reportLinks(stats transport.Stats, shape func(peer uint64) *page.Shape) []page.Link {
	list := []page.Link{}
	for _, l := range links(stats) {
		link := page.Link{Peer: l.GetPeer(), Sent: l.GetSentBytes()}
		if shape != nil {
			link.Shape = shape(link.Peer)
		}
		for _, class := range stats.Peers[link.Peer] {
			link.Connected = link.Connected || class.Connected
			link.Queued += class.QueueBytes
		}
		if list = append(list, link); len(list) == page.MaxMembers {
			break
		}
	}
	return list
}

func reportServed(c rawnode.Counters) page.Served {
	return page.Served{Roster: c.ReadsByRoster, Lease: c.ReadsByLease, Leader: c.ReadsByLeader, Quorum: c.ReadsByQuorum, Stale: c.ReadsStale}
}

func reportLeases(s *raft.LeaseStatus) *page.Leases {
	if s == nil {
		return nil
	}
	l := &page.Leases{Stable: s.Stable, Retired: s.Retired}
	if s.Roster == nil {
		return l
	}
	l.Term, l.Roster = uint64(s.Roster.ID.Term), uint64(s.Roster.ID.Seq)
	for _, a := range s.Roster.Spans {
		span := page.Span{From: shownKey(a.Span.Start), To: shownKey(a.Span.End), Nodes: []uint64{}}
		for _, x := range a.Responders {
			if len(span.Nodes) < page.MaxMembers {
				span.Nodes = append(span.Nodes, uint64(x.Node))
			}
		}
		if l.Named = append(l.Named, span); len(l.Named) == page.MaxSpans {
			break
		}
	}
	return l
}

// shownKey is a key as text, quoted if that is needed, and cut if it is long.
func shownKey(key string) string {
	if quoted := strconv.Quote(key); quoted != `"`+key+`"` {
		key = quoted
	}
	return page.Text(key)
}

// recentEntries finds the coded entries of a group's log. What it has read of the log is
// kept, because a viewer asks for almost the same entries again and again.
type recentEntries struct {
	mu   sync.Mutex
	seen map[uint64]page.Entry // D is 0: not coded
}

// logReader is what recentEntries needs of a log.
type logReader interface {
	Term(index uint64) (uint64, error)
	Entries(lo, hi, maxBytes uint64) ([]*pb.Entry, error)
}

// How far recentEntries looks back, and how many bytes of the log it reads, for one report.
const (
	recentLook = 256
	recentLoad = 4 << 20
)

// list returns coded entries up to an index, newest first.
func (r *recentEntries) list(self uint64, log logReader, upTo uint64, s *rawnode.CodingState) (list []page.Entry) {
	r.mu.Lock()
	defer r.mu.Unlock()
	seen := make(map[uint64]page.Entry, recentLook)
	bytes := 0
	for index := upTo; index > 0 && index+recentLook > upTo && len(list) < page.MaxEntries && bytes < recentLoad; index-- {
		term, err := log.Term(index)
		if err != nil {
			break // compacted
		}
		e, ok := r.seen[index]
		if !ok || e.Term != term {
			entries, err := log.Entries(index, index+1, 0) // one at least, whatever its size
			if err != nil || len(entries) != 1 {
				break
			}
			bytes += len(entries[0].GetData())
			e = codedIn(self, index, term, entries[0].GetData())
		}
		if seen[index] = e; e.D > 0 {
			list = append(list, e)
		}
	}
	r.seen = seen
	lacking := map[uint64]raft.CodedEntry{}
	for _, e := range s.Entries {
		lacking[e.Index] = e
	}
	for i, e := range list {
		if c, ok := lacking[e.Index]; ok && c.Term == e.Term {
			list[i].Missing = c.Missing
			if own, ok := c.Units[self]; ok { // with what came later, on top
				list[i].Own = min(own, e.D)
			}
		}
	}
	return list
}

// codedIn describes the data of an entry; D is 0 unless it is coded.
func codedIn(self, index, term uint64, data []byte) page.Entry {
	e := page.Entry{Index: index, Term: term}
	if h := codedHeader(data); h != nil {
		e.Bytes, e.D, e.Encoder, e.Own = h.PayloadLen, h.D, h.Encoder, h.BaseOf(self)
	}
	return e
}

// shapes are those that were set on the node's links.
type shapes struct {
	mu  sync.Mutex
	set map[uint64]page.Shape
}

func (s *shapes) get(peer uint64) *page.Shape {
	s.mu.Lock()
	defer s.mu.Unlock()
	if shape, ok := s.set[peer]; ok {
		return &shape
	}
	return nil
}

// apply gives the link to a peer a shape.
func (s *shapes) apply(t *transport.TCP, peer uint64, shape page.Shape) error {
	err := t.SetShape(peer, shaping.Shape{BytesPerSecond: shape.BytesPerSecond, Delay: time.Duration(shape.DelayMs) * time.Millisecond})
	if err != nil {
		return err
	}
	s.mu.Lock()
	defer s.mu.Unlock()
	if s.set == nil {
		s.set = map[uint64]page.Shape{}
	}
	if delete(s.set, peer); shape != (page.Shape{}) {
		s.set[peer] = shape
	}
	return nil
}

// timed counts how long a call took, unless it failed.
func timed(h *page.Histogram, begin time.Time, err error) {
	if err == nil {
		h.Observe(time.Since(begin))
	}
}
