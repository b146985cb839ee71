// Copyright 2026 The Weft Authors
// SPDX-License-Identifier: Apache-2.0

package node

import (
	"context"
	"testing"
	"time"

	"github.com/stretchr/testify/require"

	"github.com/weftraft/weft"
	"github.com/weftraft/weft/cmd/kvdemo/internal/kv"
)

// A gateway is trusted with clients' commands, and not with the cluster's own records: a number of groups that cannot be would
// stop all nodes, and a freeze all writers.
func TestGatewayChangesNoRecordOfTheCluster(t *testing.T) {
	cfg := testConfig(t)
	stop := start(t, cfg)
	listen := freePort(t)
	gate, err := weft.Open(weft.Options{Gateway: true, ID: 101, Cluster: cfg.Cluster, Peers: cfg.Peers, Listen: listen, TickInterval: cfg.Tick})
	require.NoError(t, err)
	group, err := gate.Group(1, nil)
	require.NoError(t, err)
	propose := func(c kv.Command) (kv.Result, error) {
		ctx, cancel := context.WithTimeout(t.Context(), time.Minute)
		defer cancel()
		done, err := group.Propose(ctx, c.Encode())
		if err != nil {
			return kv.Result{}, err
		}
		return readResult(done.Value)
	}
	_, err = propose(kv.Command{Op: kv.OpPut, Key: "k", Value: []byte("v")})
	require.NoError(t, err)
	secret, err := propose(kv.Command{Op: kv.OpSystem, Key: sessionsKey, Value: []byte("secret")})
	require.NoError(t, err)
	require.Equal(t, "secret", string(secret.Value))
	_, err = propose(kv.Command{Op: kv.OpSystem, Key: kv.FreezeKey, Want: []byte("a freeze that was left behind")})
	require.NoError(t, err)
	for _, c := range []kv.Command{
		{Op: kv.OpSystem, Key: groupsKey, Want: []byte("1"), Value: []byte("none")},
		{Op: kv.OpSystem, Key: kv.FreezeKey, Value: []byte("now")},
		{Op: kv.OpSystem, Key: "of a later version", Value: []byte("1")},
		{Op: kv.OpSystem, Key: sessionsKey, Want: secret.Value, Value: []byte("another")},
		{Op: kv.OpExpire, Expire: &kv.Expire{Now: time.Now().Add(time.Hour).UnixMilli(), Keys: []string{"k"}}},
	} {
		_, err := propose(c)
		require.ErrorIs(t, err, weft.ErrRefused, "%v of %q", c.Op, c.Key)
		require.ErrorContains(t, err, "node 101 is no member")
	}
	_, err = propose(kv.Command{Op: kv.OpPut, Key: "k", Value: []byte("w")})
	require.NoError(t, err)
	require.NoError(t, closeWeft(gate))
	require.NoError(t, stop())
}
