// Copyright 2026 The Weft Authors
// SPDX-License-Identifier: Apache-2.0

package rawnode_test

import (
	"context"
	"errors"
	"testing"
	"time"

	"github.com/stretchr/testify/require"

	pb "go.etcd.io/raft/v3/raftpb"

	"github.com/weftraft/weft/rawnode"
)

var errNobodyWaits = errors.New("nobody waits any more")

// endedContexts are contexts that have ended, with what they say.
func endedContexts(t *testing.T) map[error]context.Context {
	cancelled, cancel := context.WithCancelCause(t.Context())
	cancel(errNobodyWaits)
	late, cancelLate := context.WithDeadline(t.Context(), time.Now().Add(-time.Second))
	t.Cleanup(cancelLate)
	return map[error]context.Context{errNobodyWaits: cancelled, rawnode.ErrTimeout: late}
}

// calls are the calls of a host that take a context.
var calls = map[string]func(context.Context, *rawnode.Host) error{
	"propose": func(ctx context.Context, h *rawnode.Host) error {
		_, err := h.Propose(ctx, []byte("for nobody"))
		return err
	},
	"read":   func(ctx context.Context, h *rawnode.Host) error { _, err := h.Read(ctx); return err },
	"readAt": func(ctx context.Context, h *rawnode.Host) error { _, err := h.ReadAt(ctx, rawnode.Local{}); return err },
	"change": func(ctx context.Context, h *rawnode.Host) error {
		_, err := h.ProposeConfChange(ctx, addLearner(7))
		return err
	},
	"force": func(ctx context.Context, h *rawnode.Host) error {
		_, err := h.ForceConfChange(ctx, addLearner(8))
		return err
	},
	"transfer": func(ctx context.Context, h *rawnode.Host) error { return h.TransferLeader(ctx, 1) },
}

func addLearner(id uint64) pb.ConfChangeI {
	return &pb.ConfChange{Type: pb.ConfChangeAddLearnerNode.Enum(), NodeId: &id}
}

func TestCallWithEndedContextIsRefused(t *testing.T) {
	bothLibraries(t, func(t *testing.T, core rawnode.NewCore) {
		m := group(t, core, 1, nil)[1]
		must(t, m.host, "before")
		for want, ctx := range endedContexts(t) {
			for name, call := range calls {
				err := call(ctx, m.host)
				require.ErrorIs(t, err, rawnode.ErrRefused, name)
				require.ErrorIs(t, err, want, name)
			}
		}
		must(t, m.host, "after")
		require.Zero(t, m.sm.times("for nobody"))
		require.Empty(t, m.host.Status().Members.GetLearners())
		require.EqualValues(t, 2, m.host.Status().Counters.Proposals)
	})
}
