// Copyright 2026 The Weft Authors
// SPDX-License-Identifier: Apache-2.0

package node

import (
	"context"
	"fmt"
	"strings"
	"sync"
	"sync/atomic"

	"golang.org/x/sync/errgroup"
	"google.golang.org/grpc"
	"google.golang.org/grpc/codes"
	"google.golang.org/grpc/status"
	"google.golang.org/protobuf/proto"

	"github.com/weftraft/weft/cmd/kvdemo/internal/kv"
	"github.com/weftraft/weft/cmd/kvdemo/kvpb"
)

const (
	// maxWatches bounds the watches at a node, and maxParts their parts: a watch has one for each group that it is about.
	maxWatches, maxParts = 4096, 64 << 10
	// watchPage is how many events are looked at in one step, and watchBytes bounds those of one message, unless one
	// command has more.
	watchPage, watchBytes = 256, 512 << 10
	// watchProgress: a watch that has nothing to send says where it is after so many
	// commands, so that its client can go on from there.
	watchProgress = 1000
)

// watches counts the watches at a node, and ends them with it.
type watches struct {
	count, parts atomic.Int64
	ending       chan struct{}
	once         sync.Once
}

func newWatches() *watches { return &watches{ending: make(chan struct{})} }

// begin counts a watch of so many groups, or says why there is no room for it.
func (w *watches) begin(groups int) error {
	count, parts := w.count.Add(1), w.parts.Add(int64(groups))
	if count <= maxWatches && parts <= maxParts {
		return nil
	}
	w.done(groups)
	return status.Errorf(codes.ResourceExhausted, "%d watches are open at this node, which are about %d groups, want at most %d and %d: close some, or ask another node", count, parts, maxWatches, maxParts)
}

func (w *watches) done(groups int) {
	w.count.Add(-1)
	w.parts.Add(-int64(groups))
}

// end ends all watches.
func (w *watches) end() { w.once.Do(func() { close(w.ending) }) }

// Watch implements kvpb.KVServer.
func (s *service) Watch(req *kvpb.WatchRequest, stream grpc.ServerStreamingServer[kvpb.WatchResponse]) error {
	match, groups, err := s.watched(req)
	if err != nil {
		return err
	}
	if err := s.watches.begin(len(groups)); err != nil {
		return err
	}
	defer s.watches.done(len(groups))
	ctx, cancel := context.WithCancel(stream.Context())
	defer cancel()
	from, err := s.watchFrom(ctx, req, groups)
	if err != nil {
		return err
	}
	send := inPieces(stream)
	all, ctx := errgroup.WithContext(ctx)
	for _, g := range groups {
		all.Go(func() error {
			w := watch{store: s.groups[g-1].state(), group: g, next: from[g], match: match, send: send, ending: s.watches.ending}
			return w.run(ctx)
		})
	}
	return toStatus(all.Wait())
}

// inPieces returns what sends responses on a stream, for several goroutines. More events than fit a message go in several;
// those of a revision stay together, and fit, because one command has them.
func inPieces(stream grpc.ServerStreamingServer[kvpb.WatchResponse]) func(*kvpb.WatchResponse) error {
	var turn sync.Mutex // of the stream
	return func(r *kvpb.WatchResponse) error {
		turn.Lock()
		defer turn.Unlock()
		events, begin, bytes := r.GetEvents(), 0, 0
		for i := 0; i < len(events); {
			at, revision, size := i, events[i].GetRevision(), 0
			for ; i < len(events) && events[i].GetRevision() == revision; i++ {
				size += proto.Size(events[i])
			}
			if at > begin && bytes+size > watchBytes {
				upTo := &kvpb.Position{Group: r.GetPosition().GetGroup(), Revision: revision - 1}
				if err := stream.Send(&kvpb.WatchResponse{Events: events[begin:at], Position: upTo}); err != nil {
					return err
				}
				begin, bytes = at, 0
			}
			bytes += size
		}
		return stream.Send(&kvpb.WatchResponse{Events: events[begin:], Position: r.GetPosition()})
	}
}

// watched returns which keys a watch is about, and the groups that have such keys.
func (s *service) watched(req *kvpb.WatchRequest) (match func(string) bool, groups []uint64, err error) {
	if key := req.GetKey(); key != "" {
		return func(k string) bool { return k == key }, []uint64{kv.GroupOf(key, len(s.groups))}, toStatus(kv.CheckKey(key))
	}
	if _, ok := req.GetKeys().(*kvpb.WatchRequest_Prefix); !ok {
		return nil, nil, status.Error(codes.InvalidArgument, "watch: no key and no prefix, want one of them; the empty prefix is all keys")
	}
	for g := range s.groups {
		groups = append(groups, uint64(g+1))
	}
	prefix := req.GetPrefix()
	return func(k string) bool { return strings.HasPrefix(k, prefix) }, groups, nil
}

// watchFrom returns the first revision of each group that is to be sent. Where the
// client names none, that is behind all that was acknowledged before. A position that the group has not come to is of another
// cluster, or of before one was restored: a watch from there would miss what comes until the group is there.
func (s *service) watchFrom(ctx context.Context, req *kvpb.WatchRequest, groups []uint64) (map[uint64]uint64, error) {
	from := map[uint64]uint64{}
	for _, p := range req.GetAfter() {
		if p.GetGroup() < 1 || p.GetGroup() > uint64(len(s.groups)) {
			return nil, status.Errorf(codes.InvalidArgument, "watch after a position of group %d, want 1 to %d", p.GetGroup(), len(s.groups))
		}
		from[p.GetGroup()] = p.GetRevision() + 1
	}
	var ask []replicated
	for _, g := range groups {
		if next, ok := from[g]; !ok || next > s.groups[g-1].state().Revision()+1 { // the client may come from a node that was ahead
			ask = append(ask, s.groups[g-1])
		}
	}
	if len(ask) > 0 {
		if _, err := s.barrier(ctx, readRequest{}, ask...); err != nil {
			return nil, err
		}
	}
	for _, g := range groups {
		at := s.groups[g-1].state().Revision()
		if next, ok := from[g]; !ok {
			from[g] = at + 1
		} else if next > at+1 {
			return nil, toStatus(fmt.Errorf("%w: revision %d was asked for, and group %d has come to %d: is the position of another cluster, or of before a backup was restored? read the keys again, and watch from the revision of that", kv.ErrCompacted, next, g, at))
		}
	}
	return from, nil
}

// watch is the part of a watch that one group has.
type watch struct {
	store  *kv.Store
	group  uint64
	next   uint64 // the first revision that was not looked at
	sent   uint64 // position that the client knows
	match  func(string) bool
	send   func(*kvpb.WatchResponse) error
	ending <-chan struct{}
}

// errWatchEnded ends the watches of a node that stops.
var errWatchEnded = status.Error(codes.Unavailable, "the node stops: watch at another node, from the last position")

func (w *watch) run(ctx context.Context) error {
	if err := w.progress(nil); err != nil {
		return err
	}
	for {
		events, next, more, err := w.store.Events(w.next, watchPage)
		if err != nil {
			return err
		}
		w.next = next
		if out := w.pick(events); len(out) > 0 || next > w.sent+1+watchProgress {
			if err := w.progress(out); err != nil {
				return err
			}
		}
		if more == nil {
			more = closed
		}
		select {
		case <-ctx.Done():
			return ctx.Err()
		case <-w.ending:
			return errWatchEnded
		case <-more:
		}
	}
}

var closed = func() chan struct{} {
	c := make(chan struct{})
	close(c)
	return c
}()

// progress sends events, and how far the watch is.
func (w *watch) progress(events []*kvpb.WatchResponse_Event) error {
	w.sent = w.next - 1
	return w.send(&kvpb.WatchResponse{Events: events, Position: &kvpb.Position{Group: w.group, Revision: w.sent}})
}

// pick returns the events that the client wants.
func (w *watch) pick(events []kv.Event) (out []*kvpb.WatchResponse_Event) {
	for _, e := range events {
		if w.match(e.Key) {
			out = append(out, eventOf(e))
		}
	}
	return out
}

// eventOf returns an event as clients get it.
func eventOf(e kv.Event) *kvpb.WatchResponse_Event {
	out := &kvpb.WatchResponse_Event{Kind: kvpb.WatchResponse_Event_Kind(e.Kind), Key: e.Key, Value: e.Value, Size: uint64(e.Size), Revision: e.Revision}
	if t := e.Kind.Type(); t > kv.TypeString {
		out.Kind, out.Type = kvpb.WatchResponse_Event_PUT, t.String()
	}
	return out
}
