// Copyright 2026 The Weft Authors
// SPDX-License-Identifier: Apache-2.0

package load

import (
	"context"

	"go.etcd.io/etcd/api/v3/etcdserverpb"
	"google.golang.org/grpc"
	"google.golang.org/grpc/codes"
	"google.golang.org/grpc/status"

	"github.com/weftraft/weft/cmd/kvdemo/kvpb"
)

// Store is a client of a key-value store, on one connection. Reads are linearizable.
type Store interface {
	Put(ctx context.Context, key string, value []byte) error
	// Get returns a key's value, or false.
	Get(ctx context.Context, key string) (value []byte, found bool, err error)
}

// kvdemo is kvdemo's service, which the minimal loop has, too.
type kvdemo struct{ kvpb.KVClient }

func newKvdemo(conn grpc.ClientConnInterface) Store { return kvdemo{kvpb.NewKVClient(conn)} }

func (s kvdemo) Put(ctx context.Context, key string, value []byte) error {
	_, err := s.KVClient.Put(ctx, &kvpb.PutRequest{Key: key, Value: value})
	return err
}

func (s kvdemo) Get(ctx context.Context, key string) (value []byte, found bool, err error) {
	resp, err := s.KVClient.Get(ctx, &kvpb.GetRequest{Key: key})
	if status.Code(err) == codes.NotFound {
		return nil, false, nil
	}
	return resp.GetValue(), err == nil, err
}

// etcd is etcd's service.
type etcd struct{ etcdserverpb.KVClient }

// Etcd returns etcd's store, for [Plan.Store].
func Etcd(conn grpc.ClientConnInterface) Store { return etcd{etcdserverpb.NewKVClient(conn)} }

func (s etcd) Put(ctx context.Context, key string, value []byte) error {
	_, err := s.KVClient.Put(ctx, &etcdserverpb.PutRequest{Key: []byte(key), Value: value})
	return err
}

func (s etcd) Get(ctx context.Context, key string) (value []byte, found bool, err error) {
	resp, err := s.Range(ctx, &etcdserverpb.RangeRequest{Key: []byte(key)})
	if err != nil || len(resp.GetKvs()) == 0 {
		return nil, false, err
	}
	return resp.GetKvs()[0].GetValue(), true, nil
}
