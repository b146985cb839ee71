// Copyright 2026 The Weft Authors
// SPDX-License-Identifier: Apache-2.0

package node

import (
	"bytes"
	"context"
	"crypto/sha256"
	"errors"
	"fmt"
	"io"
	"sync/atomic"
	"time"

	"google.golang.org/grpc"
	"google.golang.org/grpc/codes"
	"google.golang.org/grpc/status"

	"github.com/weftraft/weft/cmd/kvdemo/internal/kv"
	"github.com/weftraft/weft/cmd/kvdemo/kvpb"
	"github.com/weftraft/weft/rawnode"
)

const (
	// defaultDeadline bounds a call whose client named none.
	defaultDeadline = 10 * time.Second
	// A call ends here a little before the client's own deadline, so that the
	// client learns the verdict instead of guessing: by a tenth of what is left,
	// at most so much.
	maxMargin = 100 * time.Millisecond
)

// proposer is what writes need of a group.
type proposer interface {
	// propose replicates a command and returns where it stands in the log and the
	// state machine's result. An error may be the host's or the result's.
	propose(ctx context.Context, c kv.Command) (index uint64, r kv.Result, err error)
}

// replicated is what the service needs of a group.
type replicated interface {
	proposer
	// read returns when this node has applied what a read with these options is to
	// see, and says who vouches for it.
	read(ctx context.Context, o rawnode.ReadOptions) (rawnode.ReadResult, error)
	// state is what was applied.
	state() *kv.Store
}

// writes answers clients that write.
type writes struct {
	kvpb.UnimplementedKVServer
	proposers []proposer // group 1 first
	// await waits until the process knows that it has the right number of groups.
	await func(ctx context.Context) error
	// enable returns when a group takes what a level has.
	enable func(ctx context.Context, group uint64, level int) error
	// secret returns the cluster's secret of sessions.
	secret func(ctx context.Context) ([]byte, error)
}

// service answers clients of a node.
type service struct {
	writes
	groups  []replicated // those of writes
	watches *watches
	status  func() *kvpb.StatusResponse
	id      uint64 // of this node
	reads   *readCounts
	open    atomic.Int64 // values that are being sent
	waiting atomic.Int64 // questions of gateways that wait for something to tell
}

func (n *node) newService() *service {
	s := &service{
		writes: writes{await: n.await, secret: n.secret.of(n.groups[0]), enable: func(ctx context.Context, group uint64, level int) error {
			return n.enable(ctx, n.groups[group-1], level)
		}},
		status: n.status, id: n.cfg.ID, reads: &n.reads, watches: n.watches,
	}
	for _, g := range n.groups {
		s.groups, s.proposers = append(s.groups, g), append(s.proposers, g)
	}
	return s
}

// await waits until the node knows that it was told the right number of groups.
// Before, it does not know where a key belongs.
func (n *node) await(ctx context.Context) error {
	select {
	case <-n.settled:
		return nil
	default:
	}
	select {
	case <-n.settled:
		return nil
	case <-ctx.Done():
		return refusal(codes.Unavailable, "this node has not heard from its cluster yet: check that a majority of the nodes is up, and that this one is a member")
	}
}

// propose implements proposer.
func (g *group) propose(ctx context.Context, c kv.Command) (uint64, kv.Result, error) {
	return proposeThawed(ctx, g, c, func(command []byte) (uint64, kv.Result, error) {
		begin := time.Now()
		done, err := g.weft.Propose(ctx, command)
		timed(&g.writes, begin, err)
		if err != nil {
			return 0, kv.Result{}, err
		}
		r, ok := done.Value.(kv.Result)
		if !ok {
			return 0, kv.Result{}, fmt.Errorf("the state machine answered with a %T, want a kv.Result", done.Value)
		}
		return done.Index, r, nil
	})
}

// proposeThawed proposes a command by once, and again as long as the group g is frozen.
func proposeThawed(ctx context.Context, g proposer, c kv.Command, once func(command []byte) (uint64, kv.Result, error)) (uint64, kv.Result, error) {
	command, err := c.Checked()
	if err != nil {
		return 0, kv.Result{}, err
	}
	for {
		index, r, err := once(command)
		switch {
		case err != nil:
			return 0, kv.Result{}, err
		case !errors.Is(r.Err, kv.ErrFrozen):
			return index, r, r.Err
		}
		if err := thawed(ctx, g, string(r.Value)); err != nil {
			return 0, r, err
		}
	}
}

// read implements replicated.
func (g *group) read(ctx context.Context, o rawnode.ReadOptions) (rawnode.ReadResult, error) {
	begin := time.Now()
	r, err := g.weft.Read(ctx, func(asked *rawnode.ReadOptions) { *asked = o })
	timed(&g.readTimes, begin, err)
	return r, err
}

// state implements replicated.
func (g *group) state() *kv.Store { return g.store }

// of returns the group of a key.
func (s *service) of(key string) replicated {
	return s.groups[kv.GroupOf(key, len(s.groups))-1]
}

// groupOf returns the number of a key's group.
func (s *writes) groupOf(key string) uint64 { return kv.GroupOf(key, len(s.proposers)) }

// write replicates a command. What is wrong with the command is found before it
// enters the log.
func (s *writes) write(ctx context.Context, c kv.Command, in *kvpb.Session) (uint64, kv.Result, error) {
	if err := kv.CheckKey(c.Key); err != nil {
		return 0, kv.Result{}, toStatus(err)
	}
	ctx, cancel := withMargin(ctx)
	defer cancel()
	if err := s.await(ctx); err != nil {
		return 0, kv.Result{}, err
	}
	if err := s.inSession(ctx, &c, in); err != nil {
		return 0, kv.Result{}, toStatus(err)
	}
	index, r, err := s.proposers[s.groupOf(c.Key)-1].propose(ctx, c)
	if c.Op == kv.OpPart {
		err = unseen("bring a part", err)
	}
	return index, r, toStatus(err)
}

func (s *writes) Put(ctx context.Context, req *kvpb.PutRequest) (*kvpb.PutResponse, error) {
	index, r, err := s.write(ctx, kv.Command{Op: kv.OpPut, Key: req.GetKey(), Value: req.GetValue()}, req.GetSession())
	if err != nil {
		return nil, err
	}
	return &kvpb.PutResponse{Index: index, Position: s.written(req.GetKey(), r)}, nil
}

func (s *writes) Delete(ctx context.Context, req *kvpb.DeleteRequest) (*kvpb.DeleteResponse, error) {
	index, r, err := s.write(ctx, kv.Command{Op: kv.OpDelete, Key: req.GetKey()}, req.GetSession())
	if err != nil {
		return nil, err
	}
	return &kvpb.DeleteResponse{Index: index, Existed: r.Existed, Position: s.written(req.GetKey(), r)}, nil
}

func (s *writes) PutPart(ctx context.Context, req *kvpb.PutPartRequest) (*kvpb.PutPartResponse, error) {
	upload, err := uploadID(req.GetUpload())
	if err != nil {
		return nil, err
	}
	index, _, err := s.write(ctx, kv.Command{
		Op: kv.OpPart, Key: req.GetKey(), Upload: upload, Size: int64(req.GetSize()), Part: int(req.GetPart()), Value: req.GetData(),
	}, nil)
	if err != nil {
		return nil, err
	}
	return &kvpb.PutPartResponse{Index: index}, nil
}

func (s *writes) Finish(ctx context.Context, req *kvpb.FinishRequest) (*kvpb.PutResponse, error) {
	upload, err := uploadID(req.GetUpload())
	if err != nil {
		return nil, err
	}
	if n := len(req.GetSha256()); n != sha256.Size {
		return nil, status.Errorf(codes.InvalidArgument, "sha256: %d bytes, want %d", n, sha256.Size)
	}
	index, r, err := s.write(ctx, kv.Command{
		Op: kv.OpFinish, Key: req.GetKey(), Upload: upload, Size: int64(req.GetSize()), SHA256: [sha256.Size]byte(req.GetSha256()),
	}, req.GetSession())
	if err != nil {
		return nil, err
	}
	return &kvpb.PutResponse{Index: index, Position: s.written(req.GetKey(), r)}, nil
}

func uploadID(b []byte) (id kv.UploadID, err error) {
	if len(b) != len(id) {
		return id, status.Errorf(codes.InvalidArgument, "upload: %d bytes, want %d", len(b), len(id))
	}
	return kv.UploadID(b), nil
}

func (s *writes) OpenSession(ctx context.Context, req *kvpb.OpenSessionRequest) (*kvpb.OpenSessionResponse, error) {
	if err := kv.CheckKey(req.GetKey()); err != nil {
		return nil, toStatus(err)
	}
	ctx, cancel := withMargin(ctx)
	defer cancel()
	if err := s.await(ctx); err != nil {
		return nil, err
	}
	group := s.groupOf(req.GetKey())
	_, r, err := s.proposers[group-1].propose(ctx, kv.Command{Op: kv.OpOpenSession})
	if err != nil {
		return nil, toStatus(unseen("open a session", err))
	}
	id, err := s.seal(ctx, r.Session)
	if err != nil {
		return nil, toStatus(err)
	}
	return &kvpb.OpenSessionResponse{Id: id, Group: group, Groups: uint32(len(s.proposers))}, nil
}

func (s *service) Get(ctx context.Context, req *kvpb.GetRequest) (*kvpb.GetResponse, error) {
	if err := kv.CheckKey(req.GetKey()); err != nil {
		return nil, toStatus(err)
	}
	g := s.of(req.GetKey())
	served, err := s.barrier(ctx, readRequest{req.GetLocal(), req.GetPolicy(), keySpan(req.GetKey())}, g)
	if err != nil {
		return nil, err
	}
	position := s.position(kv.GroupOf(req.GetKey(), len(s.groups)))
	revision, err := s.revision(ctx, req.GetKey(), req.GetRevision())
	if err != nil {
		return nil, toStatus(err)
	}
	value, applied, err := g.state().Get(req.GetKey())
	if err != nil {
		return nil, toStatus(err)
	}
	return &kvpb.GetResponse{Value: value, Applied: applied, Served: served, Position: position, Revision: revision}, nil
}

// revision returns the revision of a key if it is wanted, of a state that is not newer than
// the value which is read next: a comparison with it then fails if the value was
// changed in between.
func (s *service) revision(ctx context.Context, key string, wanted bool) (uint64, error) {
	if !wanted {
		return 0, nil
	}
	ctx, cancel := withMargin(ctx)
	defer cancel()
	group := kv.GroupOf(key, len(s.groups))
	if err := s.enable(ctx, group, kv.LevelOfRevisions); err != nil {
		return 0, err
	}
	return s.groups[group-1].state().KeyRevision(key)
}

// Read sends a value in chunks, from one consistent view. Memory is bounded by
// a part: Send waits for the reader, for a while.
func (s *service) Read(req *kvpb.ReadRequest, stream grpc.ServerStreamingServer[kvpb.ReadChunk]) (err error) {
	if err := kv.CheckKey(req.GetKey()); err != nil {
		return toStatus(err)
	}
	g := s.of(req.GetKey())
	served, err := s.barrier(stream.Context(), readRequest{req.GetLocal(), req.GetPolicy(), keySpan(req.GetKey())}, g)
	if err != nil {
		return err
	}
	position := s.position(kv.GroupOf(req.GetKey(), len(s.groups)))
	revision, err := s.revision(stream.Context(), req.GetKey(), req.GetRevision())
	if err != nil {
		return toStatus(err)
	}
	if s.open.Add(1) > maxOpen {
		s.open.Add(-1)
		return status.Errorf(codes.ResourceExhausted, "%d values are being read at this node, want at most that: ask another node", maxOpen)
	}
	defer s.open.Add(-1)
	value, err := g.state().Value(req.GetKey())
	if err != nil {
		return toStatus(err)
	}
	defer func() {
		if e := value.Close(); err == nil {
			err = toStatus(e)
		}
	}()
	if req.GetOffset() > uint64(value.Size) {
		return status.Errorf(codes.OutOfRange, "offset %d: the value has %d bytes", req.GetOffset(), value.Size)
	}
	err = sendSoon(stream, &kvpb.ReadChunk{Size: uint64(value.Size), Sha256: value.SHA256, Applied: value.Applied, Served: served, Position: position, Revision: revision})
	for skip := req.GetOffset(); err == nil; {
		var part []byte
		part, err = value.Next()
		cut := min(skip, uint64(len(part)))
		if skip -= cut; err == nil && cut < uint64(len(part)) {
			err = sendSoon(stream, &kvpb.ReadChunk{Data: bytes.Clone(part[cut:])})
		}
	}
	if errors.Is(err, io.EOF) {
		return nil
	}
	return toStatus(err)
}

func (s *service) List(ctx context.Context, req *kvpb.ListRequest) (*kvpb.ListResponse, error) {
	if _, err := s.barrier(ctx, readRequest{req.GetLocal(), req.GetPolicy(), prefixSpan(req.GetPrefix())}, s.groups...); err != nil {
		return nil, err
	}
	q := kv.Query{Prefix: req.GetPrefix(), After: req.GetAfter(), Limit: int(req.GetLimit()), Digests: req.GetDigests()}
	page, positions, err := s.list(q)
	if err != nil {
		return nil, toStatus(err)
	}
	resp := &kvpb.ListResponse{Next: page.Next, Applied: page.Applied, Positions: positions}
	for _, item := range page.Items {
		resp.Items = append(resp.Items, &kvpb.ListResponse_Item{Key: item.Key, Size: uint64(item.Size), Sha256: item.SHA256})
	}
	return resp, nil
}

// list returns a page of all groups, and where they are.
func (s *service) list(q kv.Query) (kv.Page, []*kvpb.Position, error) {
	pages := make([]kv.Page, len(s.groups))
	q.Share = len(s.groups)
	var positions []*kvpb.Position
	for i, g := range s.groups {
		var err error
		positions = append(positions, s.position(uint64(i+1)))
		if pages[i], err = g.state().List(q); err != nil {
			return kv.Page{}, nil, err
		}
	}
	return mergePages(pages, q.Limit), positions, nil
}

func (s *service) Status(context.Context, *kvpb.StatusRequest) (*kvpb.StatusResponse, error) {
	return s.status(), nil
}

// position returns where a group is. What is read afterwards is not older.
func (s *service) position(group uint64) *kvpb.Position {
	return &kvpb.Position{Group: group, Revision: s.groups[group-1].state().Revision()}
}

// written is where a write took effect in the group of its key.
func (s *writes) written(key string, r kv.Result) *kvpb.Position {
	return written(s.groupOf(key), r)
}

// written is where a write took effect, nil if it was sent before.
func written(group uint64, r kv.Result) *kvpb.Position {
	if r.Revision == 0 {
		return nil
	}
	return &kvpb.Position{Group: group, Revision: r.Revision}
}

func withMargin(ctx context.Context) (context.Context, context.CancelFunc) {
	deadline, ok := ctx.Deadline()
	if !ok {
		return context.WithTimeout(ctx, defaultDeadline)
	}
	return context.WithDeadline(ctx, deadline.Add(-min(maxMargin, time.Until(deadline)/10)))
}
