// Copyright 2026 The Weft Authors
// SPDX-License-Identifier: Apache-2.0

package node

import (
	"context"
	"crypto/hmac"
	"crypto/rand"
	"crypto/sha256"
	"encoding/binary"
	"sync/atomic"

	"github.com/weftraft/weft/cmd/kvdemo/internal/kv"
	"github.com/weftraft/weft/cmd/kvdemo/internal/secure"
	"github.com/weftraft/weft/cmd/kvdemo/kvpb"
	"github.com/weftraft/weft/rawnode/session"
)

// The state machine numbers sessions 1, 2, 3, ... A client that guessed the session of
// another could use up numbers of writes there. A later write of the owner under such a
// number would count as a repetition: answered as done, and not applied. So a client
// knows its session under another number: the state machine's, encrypted with a key for
// the holder of its certificate. Under the key of somebody else that is no session, and
// to guess one takes 2^50 calls. Clients without certificates have one key, and trust each
// other; but one that has outlived its cluster has no session in the next, which was
// restored from a backup perhaps.
//
// The keys come from a secret of the cluster, which is a system key, and in no backup. (Rejected:
// the holder in each session's record, which is another format of the state; and a field beside the
// number, which each client must send back.)

// sessionsKey is the system key with the secret.
const sessionsKey = "sessions-secret"

// sessionsSecret is the cluster's secret of sessions, once it is known.
type sessionsSecret struct{ known atomic.Pointer[[]byte] }

// of returns what asks group 1 for the secret, and makes one if the cluster has none.
func (s *sessionsSecret) of(group proposer) func(ctx context.Context) ([]byte, error) {
	return func(ctx context.Context) ([]byte, error) {
		if known := s.known.Load(); known != nil {
			return *known, nil
		}
		fresh := make([]byte, sha256.Size)
		_, _ = rand.Read(fresh) // never fails
		_, r, err := group.propose(ctx, kv.Command{Op: kv.OpSystem, Key: sessionsKey, Value: fresh})
		if err != nil {
			return nil, unseen("ask for the secret of sessions", err)
		}
		s.known.Store(&r.Value) // ours, or the one that was there
		return r.Value, nil
	}
}

// sessionKey returns the key for the client of a call.
func (s *writes) sessionKey(ctx context.Context) ([]byte, error) {
	secret, err := s.secret(ctx)
	if err != nil {
		return nil, err
	}
	mac := hmac.New(sha256.New, secret)
	_, _ = mac.Write([]byte(secure.Holder(ctx))) // a hash never fails
	return mac.Sum(nil), nil
}

// seal returns the number of a session for the client of a call.
func (s *writes) seal(ctx context.Context, id session.ID) (uint64, error) {
	key, err := s.sessionKey(ctx)
	if err != nil {
		return 0, err
	}
	return shuffle(key, uint64(id), 0, 1, 2, 3), nil
}

// inSession makes a command part of the session that a client names, if it names one.
func (s *writes) inSession(ctx context.Context, c *kv.Command, in *kvpb.Session) error {
	if in.GetId() == 0 {
		return nil
	}
	key, err := s.sessionKey(ctx)
	if err != nil {
		return err
	}
	id := shuffle(key, in.GetId()<<32|in.GetId()>>32, 3, 2, 1, 0)
	c.Session = session.ID(id<<32 | id>>32)
	// A session has one write under way: those before are acknowledged.
	c.Sequence, c.Acknowledged = in.GetSequence(), max(in.GetSequence(), 1)-1
	return nil
}

// shuffle permutes the numbers of 64 bits by a Feistel network with these rounds. The rounds in reverse order undo it, if
// the halves are swapped before and after.
func shuffle(key []byte, v uint64, rounds ...byte) uint64 {
	left, right := uint32(v>>32), uint32(v)
	for _, round := range rounds {
		mac := hmac.New(sha256.New, key)
		_, _ = mac.Write(binary.BigEndian.AppendUint32([]byte{round}, right)) // a hash never fails
		left, right = right, left^binary.BigEndian.Uint32(mac.Sum(nil))
	}
	return uint64(left)<<32 | uint64(right)
}
