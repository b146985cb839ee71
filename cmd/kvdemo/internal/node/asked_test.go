// Copyright 2026 The Weft Authors
// SPDX-License-Identifier: Apache-2.0

package node

import (
	"context"
	"math/rand/v2"
	"testing"

	"github.com/stretchr/testify/require"
	"google.golang.org/grpc/codes"
	"google.golang.org/grpc/status"
	"google.golang.org/protobuf/proto"
	"google.golang.org/protobuf/types/known/wrapperspb"

	"github.com/weftraft/weft/cmd/kvdemo/internal/kv"
	"github.com/weftraft/weft/cmd/kvdemo/kvpb"
	"github.com/weftraft/weft/rawnode"
)

// put asks a question, and reads the answer.
func put(t *testing.T, a asked, q question, request, response proto.Message) error {
	t.Helper()
	b, err := ask(q, request)
	require.NoError(t, err)
	answer, err := a.Query(patient(t), b)
	require.NoError(t, err)
	return readAnswer(answer, response)
}

func TestQuestionsOfGatewaysAreAnsweredLikeCallsOfClients(t *testing.T) {
	s, host := testService(t)
	a := asked{host.store, s}
	_, err := s.Put(t.Context(), &kvpb.PutRequest{Key: "k", Value: []byte("v")})
	require.NoError(t, err)

	got := &kvpb.GetResponse{}
	require.NoError(t, put(t, a, askGet, &kvpb.GetRequest{Key: "k"}, got))
	require.Equal(t, "v", string(got.GetValue()))
	err = put(t, a, askGet, &kvpb.GetRequest{Key: "none"}, got)
	require.Equal(t, codes.NotFound, status.Code(err))
	err = put(t, a, askGet, &kvpb.GetRequest{}, got)
	require.Equal(t, codes.InvalidArgument, status.Code(err))

	look, err := kv.EncodeActions([]kv.Action{{Kind: kv.ActGet, Key: "k"}, {Kind: kv.ActHas, Key: "none"}})
	require.NoError(t, err)
	found := &wrapperspb.BytesValue{}
	require.NoError(t, put(t, a, askLook, wrapperspb.Bytes(look), found))
	results, err := kv.DecodeResults(found.GetValue(), 2)
	require.NoError(t, err)
	require.Equal(t, "v", string(results[0].Value))
	require.False(t, results[1].Existed)

	count := &kvpb.Position{}
	require.NoError(t, put(t, a, askCount, &kvpb.StatusRequest{}, count))
	require.EqualValues(t, 1, count.GetRevision())

	now := &kvpb.Position{}
	require.NoError(t, put(t, a, askRevision, &kvpb.Position{Group: 1}, now))
	for since, want := range map[uint64]bool{now.GetRevision(): false, now.GetRevision() - 1: true} {
		changed := &kvpb.Compare{}
		require.NoError(t, put(t, a, askChanged, &kvpb.Compare{Key: "k", Want: &kvpb.Compare_ChangedAfter{ChangedAfter: since}}, changed))
		require.Equal(t, want, changed.GetExists())
	}
	for _, q := range []question{askRevision, askEvents, askEnable} {
		err := put(t, a, q, &kvpb.Position{Group: 2}, now)
		require.Equal(t, codes.InvalidArgument, status.Code(err), "question %d: %v", q, err)
	}
}

// A node forgets what many commands have changed: the next step of a watch must not look for that again.
func TestStepOfAWatchWithoutEventsSaysHowFarItHasLooked(t *testing.T) {
	s, _ := testService(t)
	for range 3 {
		_, err := s.Put(t.Context(), &kvpb.PutRequest{Key: "busy"})
		require.NoError(t, err)
	}
	ended, cancel := context.WithCancel(t.Context())
	cancel()
	found, err := s.watchStep(ended, &kvpb.WatchRequest{Keys: &kvpb.WatchRequest_Key{Key: "quiet"}, After: []*kvpb.Position{{Group: 1}}})
	require.NoError(t, err)
	require.Empty(t, found.GetEvents())
	require.EqualValues(t, 3, found.GetPosition().GetRevision())
}

// Watches and subscribers of many gateways leave room at a node for other questions.
func TestQuestionsThatWaitAreBounded(t *testing.T) {
	s, _ := testService(t)
	_, err := s.Put(t.Context(), &kvpb.PutRequest{Key: "k"})
	require.NoError(t, err)
	step := func() error {
		_, err := s.watchStep(t.Context(), &kvpb.WatchRequest{Keys: &kvpb.WatchRequest_Key{Key: "k"}, After: []*kvpb.Position{{Group: 1}}})
		return err
	}
	events := func() error {
		_, err := s.events(t.Context(), &kvpb.Position{Group: 1, Revision: 1})
		return err
	}
	for _, ask := range []func() error{step, events} {
		s.waiting.Store(maxWaiting)
		require.Equal(t, codes.ResourceExhausted, status.Code(ask()))
		s.waiting.Store(maxWaiting - 1)
		require.NoError(t, ask())
		require.EqualValues(t, maxWaiting-1, s.waiting.Load())
	}
}

// A result that cannot be read is that of a command which was applied: a client must not take it for a refusal.
func TestResultThatCannotBeReadLeavesTheOutcomeOpen(t *testing.T) {
	for _, value := range []any{nil, []byte{}, []byte{1}, []byte{0, 0, 0, 0, 0}} {
		_, err := readResult(value)
		require.ErrorIs(t, err, rawnode.ErrUnknown, "%v", value)
		require.Equal(t, codes.Unavailable, status.Code(toStatus(err)))
	}
	_, err := readResult([]byte{0, 0, 0, 0})
	require.NoError(t, err)
}

// Whatever bytes come, there is an answer, or an error.
func TestBytesThatAreNoQuestionsAndNoAnswersAreRefused(t *testing.T) {
	s, host := testService(t)
	a := asked{host.store, s}
	for _, b := range [][]byte{nil, {0}, {byte(askCount) + 1}, {255, 1}} {
		answer, err := a.Query(t.Context(), b)
		require.NoError(t, err)
		require.Error(t, readAnswer(answer, &kvpb.GetResponse{}), "%x", b)
	}
	rng := rand.New(rand.NewPCG(3, 3))
	for range 2000 {
		b := make([]byte, 1+rng.IntN(40))
		for i := range b {
			b[i] = byte(rng.Uint32())
		}
		b[0] = byte(1 + rng.IntN(int(askCount)))
		if q := question(b[0]); q == askWatch || q == askEvents {
			continue // these wait, if the bytes happen to make sense
		}
		answer, err := a.Query(t.Context(), b)
		require.NoError(t, err)
		require.NotEmpty(t, answer)
		_ = readAnswer(b, &kvpb.GetResponse{}) // an error, mostly
		_, _ = kv.DecodeEvents(b)
		_, _ = kv.DecodeResults(b, 1)
		_, _ = kv.DecodeResult(b)
	}
	for _, b := range [][]byte{nil, {2}, {failed}, {failed, 8, 0}, {0, 255}} {
		require.Error(t, readAnswer(b, &kvpb.GetResponse{}), "%x", b)
	}
}
