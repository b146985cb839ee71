// Copyright 2026 The Weft Authors
// SPDX-License-Identifier: Apache-2.0

package client

import (
	"context"
	"errors"
	"fmt"
	"sync"

	"github.com/weftraft/weft/cmd/kvdemo/internal/kv"
	"github.com/weftraft/weft/cmd/kvdemo/kvpb"
)

// sessions are those of a client that no write uses at present. A session has
// one write under way at a time, so a client has as many in each group as it
// makes writes at once.
type sessions struct {
	mu     sync.Mutex
	groups int // 0 until a node has said it
	idle   map[uint64][]*session
}

// session is a session of a group.
type session struct {
	id, group uint64
	sequence  uint64 // of its last write
}

// take returns an idle session for a key, or nil.
func (s *sessions) take(key string) *session {
	s.mu.Lock()
	defer s.mu.Unlock()
	if s.groups == 0 {
		return nil
	}
	group := kv.GroupOf(key, s.groups)
	n := len(s.idle[group])
	if n == 0 {
		return nil
	}
	last := s.idle[group][n-1]
	s.idle[group] = s.idle[group][:n-1]
	return last
}

// put takes a session back. The session's next write has a higher number, so attempts
// of this write that are still under way have no effect any more.
func (s *sessions) put(one *session) {
	s.mu.Lock()
	defer s.mu.Unlock()
	s.idle[one.group] = append(s.idle[one.group], one)
}

// session returns a session for a write of a key.
func (c *Client) session(ctx context.Context, key string) (*session, error) {
	if s := c.sessions.take(key); s != nil {
		return s, nil
	}
	// A session that is opened and not used is forgotten some day, so opening one is no write.
	resp, err := ask(ctx, c, kvpb.KVClient.OpenSession, &kvpb.OpenSessionRequest{Key: key})
	if err != nil {
		return nil, fmt.Errorf("the write was not sent, as no session could be opened for it: %w", err)
	}
	c.sessions.mu.Lock()
	defer c.sessions.mu.Unlock()
	if c.sessions.groups = int(resp.GetGroups()); c.sessions.idle == nil {
		c.sessions.idle = map[uint64][]*session{}
	}
	return &session{id: resp.GetId(), group: resp.GetGroup()}, nil
}

// write makes a write in a session, once, however often it has to be sent.
func write[Response any](ctx context.Context, c *Client, key string, call func(context.Context, kvpb.KVClient, *kvpb.Session) (Response, error)) (resp Response, err error) {
	if err := kv.CheckKey(key); err != nil {
		return resp, err
	}
	ctx, cancel := c.deadline(ctx)
	defer cancel()
	for {
		s, err := c.session(ctx, key)
		if err != nil {
			return resp, err
		}
		s.sequence++
		err = c.do(ctx, true, func(ctx context.Context, kv kvpb.KVClient) (err error) {
			resp, err = call(ctx, kv, &kvpb.Session{Id: s.id, Sequence: s.sequence})
			return err
		})
		if !errors.Is(err, errNoSession) {
			c.sessions.put(s)
			return resp, err
		}
		// The nodes have forgotten a session that was idle for long. Without
		// doubt about an earlier attempt, another session serves as well.
		if errors.Is(err, ErrUnknown) {
			return resp, err
		}
	}
}
