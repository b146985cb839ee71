// Copyright 2026 The Weft Authors
// SPDX-License-Identifier: Apache-2.0

package node

import (
	"fmt"
	"testing"
	"time"

	"github.com/stretchr/testify/require"
	"google.golang.org/grpc"
	"google.golang.org/grpc/credentials"

	"github.com/weftraft/weft/cmd/kvdemo/internal/kv"
	"github.com/weftraft/weft/cmd/kvdemo/internal/secure"
	"github.com/weftraft/weft/cmd/kvdemo/kvpb"
	"github.com/weftraft/weft/internal/certs"
)

// A client cannot use the session of another certificate: it would take numbers of writes
// that are not its own, and the owner's writes would be answered as done, and not be.
func TestSessionBelongsToItsCertificate(t *testing.T) {
	dir := t.TempDir()
	require.NoError(t, certs.Generate(dir, certs.ValidFor(time.Hour), certs.Subject{Cluster: 3, Node: 1},
		certs.Subject{Cluster: 3, Client: "ann"}, certs.Subject{Cluster: 3, Client: "bob"}))
	cfg := testConfig(t)
	cfg.TLS = certs.NodeFiles(dir, 1)
	ctx := patient(t)
	as := func(name string) kvpb.KVClient {
		config, err := secure.Client(certs.ClientFiles(dir, name))
		require.NoError(t, err)
		conn, err := grpc.NewClient(cfg.ClientListen, grpc.WithTransportCredentials(credentials.NewTLS(config)), grpc.WithDefaultCallOptions(grpc.WaitForReady(true)))
		require.NoError(t, err)
		t.Cleanup(func() { _ = conn.Close() })
		return kvpb.NewKVClient(conn)
	}
	put := func(c kvpb.KVClient, value string, id, sequence uint64) error {
		_, err := c.Put(ctx, &kvpb.PutRequest{Key: "k", Value: []byte(value), Session: &kvpb.Session{Id: id, Sequence: sequence}})
		return err
	}
	stop := start(t, cfg)
	ann, bob := as("ann"), as("bob")
	opened, err := ann.OpenSession(ctx, &kvpb.OpenSessionRequest{Key: "k"})
	require.NoError(t, err)
	require.NoError(t, put(ann, "ann's first", opened.GetId(), 1))
	for _, id := range []uint64{opened.GetId(), 1, 2} {
		require.ErrorContains(t, put(bob, "bob's", id, 2), kv.ErrExpired.Error(), "session %d", id)
	}
	_, err = bob.Txn(ctx, &kvpb.TxnRequest{
		Then:    []*kvpb.Action{{Kind: kvpb.Action_DELETE, Key: "k"}},
		Session: &kvpb.Session{Id: opened.GetId(), Sequence: 2},
	})
	require.ErrorContains(t, err, kv.ErrExpired.Error())
	require.NoError(t, stop())

	stop = start(t, cfg) // the session is ann's after a restart, too
	ann, bob = as("ann"), as("bob")
	require.NoError(t, put(ann, "ann's second", opened.GetId(), 2))
	require.ErrorContains(t, put(bob, "bob's", opened.GetId(), 3), kv.ErrExpired.Error())
	got, err := bob.Get(ctx, &kvpb.GetRequest{Key: "k"})
	require.NoError(t, err)
	require.Equal(t, "ann's second", string(got.GetValue()))
	require.NoError(t, put(ann, "ann's third", opened.GetId(), 3))
	require.NoError(t, stop())
}

// A client that outlives its cluster goes on with its session, at the same addresses perhaps, where the keys were restored from a backup. The
// session is none of the new cluster's, whose clients would get the results of the old one's writes for their own.
func TestSessionOfAnEarlierClusterIsNone(t *testing.T) {
	ctx := patient(t)
	open := func() (c kvpb.KVClient, id uint64, stop func() error) {
		cfg := testConfig(t)
		stop = start(t, cfg)
		c = kvpb.NewKVClient(dial(t, cfg.ClientListen))
		opened, err := c.OpenSession(ctx, &kvpb.OpenSessionRequest{Key: "k"}, grpc.WaitForReady(true))
		require.NoError(t, err)
		return c, opened.GetId(), stop
	}
	put := func(c kvpb.KVClient, value string, id, sequence uint64) error {
		_, err := c.Put(ctx, &kvpb.PutRequest{Key: "k", Value: []byte(value), Session: &kvpb.Session{Id: id, Sequence: sequence}})
		return err
	}
	first, old, stop := open()
	require.NoError(t, put(first, "one", old, 1))
	require.NoError(t, stop())
	second, id, stop := open()
	require.ErrorContains(t, put(second, "two", old, 2), kv.ErrExpired.Error())
	for sequence := range uint64(2) {
		value := fmt.Sprint("new ", sequence)
		require.NoError(t, put(second, value, id, 1+sequence))
		got, err := second.Get(ctx, &kvpb.GetRequest{Key: "k"})
		require.NoError(t, err)
		require.Equal(t, value, string(got.GetValue()))
	}
	require.NoError(t, stop())
}
