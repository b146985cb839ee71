// Copyright 2026 The Weft Authors
// SPDX-License-Identifier: Apache-2.0

package node

import (
	"context"
	"errors"
	"fmt"
	"slices"
	"time"

	spb "google.golang.org/genproto/googleapis/rpc/status"
	"google.golang.org/grpc"
	"google.golang.org/grpc/codes"
	"google.golang.org/grpc/status"
	"google.golang.org/protobuf/proto"

	"github.com/weftraft/weft/cmd/kvdemo/internal/kv"
	"github.com/weftraft/weft/cmd/kvdemo/kvpb"
)

// A gateway asks a node what it cannot tell itself: a question is a byte, and the request as a client
// would send it. The node answers as it would answer the client, with the read barrier that the
// request wants; so the query around the question wants none. An answer is a byte, 0 and the response or
// 1 and the status of the error.
type question byte

// The questions. The numbers are never given another meaning.
const (
	askGet       question = 1 // GetRequest, GetResponse
	askList      question = 2 // ListRequest, ListResponse
	askRead      question = 3 // ReadRequest, a ReadChunk with what there is from the offset on, up to readAhead
	askGroups    question = 4 // StatusRequest, a ListRequest whose limit is the number of groups
	askEnable    question = 5 // a Position: the group, and as revision the level; StatusRequest
	askWatchFrom question = 6 // WatchRequest, a WatchRequest with the positions to begin behind
	askWatch     question = 7 // WatchRequest behind one position, WatchResponse

	// For clients of Redis; with a read barrier but for askEvents.
	askLook      question = 8  // BytesValue of kv.EncodeActions, BytesValue of kv.EncodeResults
	askCondition question = 9  // GetRequest, a Compare that holds
	askChanged   question = 10 // a Compare with changed_after, a Compare with exists: it has changed
	askRevision  question = 11 // a Position with the group, the Position
	askEvents    question = 12 // a Position, a GetResponse: kv.EncodeEvents from there on, and as revision where to go on
	askCount     question = 13 // StatusRequest, a Position whose revision is the number of keys
)

const (
	// readAhead is how many bytes of a value a node sends in one answer, at least, if there are so many.
	readAhead = 1 << 20
	// watchWait is how long a node waits for something to send, at most.
	watchWait = 2 * time.Second
	// maxWaiting bounds the questions that wait so: a node takes 4096 questions of gateways, and others are to be answered.
	maxWaiting = 2048
	failed     = 1
)

// asked is the state of a group, which answers gateways' questions, too.
type asked struct {
	*kv.Store
	service *service
}

// Query implements weft.Querier.
func (a asked) Query(ctx context.Context, request []byte) ([]byte, error) {
	response, err := a.service.answer(ctx, request)
	if err != nil {
		return proto.MarshalOptions{}.MarshalAppend([]byte{failed}, status.Convert(toStatus(err)).Proto())
	}
	return proto.MarshalOptions{}.MarshalAppend([]byte{0}, response)
}

// AdmitFromGateway is looked for by hosts. A gateway proposes what its clients want, makes the secret of
// sessions if there is none, and ends a freeze.
func (a asked) AdmitFromGateway(command []byte) error { return kv.CheckClients(command, sessionsKey) }

// readAnswer is the inverse of what Query returns.
func readAnswer(b []byte, response proto.Message) error {
	switch {
	case len(b) > 0 && b[0] == 0:
		if err := proto.Unmarshal(b[1:], response); err != nil {
			return status.Errorf(codes.Internal, "the answer of a node cannot be read: %v", err)
		}
		return nil
	case len(b) > 0 && b[0] == failed:
		s := &spb.Status{}
		if err := proto.Unmarshal(b[1:], s); err == nil && s.GetCode() != 0 {
			return status.ErrorProto(s)
		}
	}
	return status.Errorf(codes.Internal, "the answer of a node, of %d bytes, cannot be read: does it run a later version?", len(b))
}

// answer answers a question.
func (s *service) answer(ctx context.Context, b []byte) (proto.Message, error) {
	if len(b) == 0 {
		return nil, status.Error(codes.InvalidArgument, "a question of no bytes")
	}
	answer, ok := answers[question(b[0])]
	if !ok {
		return nil, status.Errorf(codes.Unimplemented, "question %d, this version of kvdemo answers 1 to %d", b[0], len(answers))
	}
	return answer(ctx, s, b)
}

// answers has what answers each question.
var answers = map[question]func(context.Context, *service, []byte) (proto.Message, error){
	askGet:       answered((*service).Get),
	askList:      answered((*service).List),
	askRead:      answered((*service).readSome),
	askGroups:    answered((*service).countGroups),
	askEnable:    answered((*service).enableFor),
	askWatchFrom: answered((*service).watchBegin),
	askWatch:     answered((*service).watchStep),
	askLook:      answered((*service).look),
	askCondition: answered((*service).condition),
	askChanged:   answered((*service).changed),
	askRevision:  answered((*service).revisionOf),
	askEvents:    answered((*service).events),
	askCount:     answered((*service).countAsked),
}

// answered reads a request and answers it.
func answered[T any, Request interface {
	*T
	proto.Message
}, Response proto.Message](do func(*service, context.Context, Request) (Response, error)) func(context.Context, *service, []byte) (proto.Message, error) {
	return func(ctx context.Context, s *service, b []byte) (proto.Message, error) {
		request := Request(new(T))
		if err := proto.Unmarshal(b[1:], request); err != nil {
			return nil, status.Errorf(codes.InvalidArgument, "question %d cannot be read: %v", b[0], err)
		}
		return do(s, ctx, request)
	}
}

func (s *service) countGroups(ctx context.Context, _ *kvpb.StatusRequest) (*kvpb.ListRequest, error) {
	if err := s.await(ctx); err != nil {
		return nil, err
	}
	return &kvpb.ListRequest{Limit: uint32(len(s.groups))}, nil
}

func (s *service) enableFor(ctx context.Context, p *kvpb.Position) (*kvpb.StatusRequest, error) {
	if g, level := p.GetGroup(), p.GetRevision(); g < 1 || g > uint64(len(s.groups)) || level > kv.NewestLevel {
		return nil, status.Errorf(codes.InvalidArgument, "level %d of group %d, want at most level %d, and group 1 to %d", level, g, kv.NewestLevel, len(s.groups))
	}
	return &kvpb.StatusRequest{}, s.enable(ctx, p.GetGroup(), int(p.GetRevision()))
}

// some collects the beginning of a stream.
type some struct {
	grpc.ServerStream
	ctx   context.Context
	chunk *kvpb.ReadChunk // nil: nothing was sent
}

// errEnough ends a stream of which there is enough.
var errEnough = errors.New("there is enough")

func (r *some) Context() context.Context { return r.ctx }

func (r *some) Send(c *kvpb.ReadChunk) error {
	if r.chunk == nil {
		r.chunk = c
	} else {
		r.chunk.Data = append(r.chunk.Data, c.GetData()...)
	}
	if len(r.chunk.GetData()) >= readAhead {
		return errEnough
	}
	return nil
}

// readSome is Read up to readAhead bytes.
func (s *service) readSome(ctx context.Context, req *kvpb.ReadRequest) (*kvpb.ReadChunk, error) {
	r := &some{ctx: ctx}
	if err := s.Read(req, r); err != nil && (r.chunk == nil || len(r.chunk.GetData()) < readAhead) {
		return nil, err
	}
	return r.chunk, nil
}

// watchBegin returns the request with the positions behind which the watch begins.
func (s *service) watchBegin(ctx context.Context, req *kvpb.WatchRequest) (*kvpb.WatchRequest, error) {
	_, groups, err := s.watched(req)
	if err != nil {
		return nil, err
	}
	from, err := s.watchFrom(ctx, req, groups)
	if err != nil {
		return nil, err
	}
	req.After = nil
	for _, g := range groups {
		req.After = append(req.After, &kvpb.Position{Group: g, Revision: from[g] - 1})
	}
	return req, nil
}

// waits counts a question that waits for something to tell, or says that there are too many; the gateway asks again.
func (s *service) waits() (done func(), err error) {
	done = func() { s.waiting.Add(-1) }
	if n := s.waiting.Add(1); n > maxWaiting {
		done()
		return nil, status.Errorf(codes.ResourceExhausted, "%d questions of gateways wait at this node for watches and subscribers, want at most %d", n, maxWaiting)
	}
	return done, nil
}

// watchStep returns what comes behind the position of one group, as soon as there is something, or where the watch is
// after watchWait.
func (s *service) watchStep(ctx context.Context, req *kvpb.WatchRequest) (*kvpb.WatchResponse, error) {
	match, groups, err := s.watched(req)
	if err != nil {
		return nil, err
	}
	if len(req.GetAfter()) != 1 || !slices.Contains(groups, req.GetAfter()[0].GetGroup()) {
		return nil, fmt.Errorf("%w watch: %d positions, want that of one group with such keys", kv.ErrInvalid, len(req.GetAfter()))
	}
	done, err := s.waits()
	if err != nil {
		return nil, err
	}
	defer done()
	var found *kvpb.WatchResponse
	at := req.GetAfter()[0]
	ctx, cancel := context.WithTimeout(ctx, watchWait)
	defer cancel()
	w := watch{store: s.groups[at.GetGroup()-1].state(), group: at.GetGroup(), next: at.GetRevision() + 1, match: match, ending: s.watches.ending,
		send: func(r *kvpb.WatchResponse) error {
			if found = r; len(r.GetEvents()) > 0 {
				return errEnough
			}
			return nil
		}}
	if err := w.run(ctx); err != nil && !errors.Is(err, errEnough) && ctx.Err() == nil {
		return nil, err
	}
	found.Position.Revision = w.next - 1 // as the next step must not look for what this node may have forgotten by then
	return found, nil
}

// ask encodes a question.
func ask(q question, request proto.Message) ([]byte, error) {
	return proto.MarshalOptions{}.MarshalAppend([]byte{byte(q)}, request)
}
