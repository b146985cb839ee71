// Copyright 2026 The Weft Authors
// SPDX-License-Identifier: Apache-2.0

package realreads

import (
	"context"
	"errors"
	"fmt"
	"strconv"
	"time"

	"go.etcd.io/etcd/api/v3/etcdserverpb"
	"google.golang.org/grpc"

	"github.com/weftraft/weft/cmd/internal/cluster"
	"github.com/weftraft/weft/cmd/internal/nodes"
	"github.com/weftraft/weft/cmd/weftbench/internal/load"
	"github.com/weftraft/weft/cmd/weftbench/internal/readsbench"
	"github.com/weftraft/weft/internal/lab"
)

// electionTicks are how many heartbeats make an election timeout, as at kvdemo.
const electionTicks = 10

// etcdClient is a connection to a member of released etcd.
type etcdClient struct {
	*grpc.ClientConn
	// serializable reads are answered by the member that is asked, from what it has: they may be stale.
	serializable bool
}

func (c etcdClient) put(ctx context.Context, key string, value []byte) error {
	return load.Etcd(c).Put(ctx, key, value)
}

// get is a linearizable read, as etcd's are unless a client asks for another: the member that
// is asked asks the leader, which asks a majority. Or it is a serializable one.
func (c etcdClient) get(ctx context.Context, key string) (value []byte, local bool, err error) {
	resp, err := etcdserverpb.NewKVClient(c).Range(ctx, &etcdserverpb.RangeRequest{Key: []byte(key), Serializable: c.serializable})
	switch {
	case err != nil:
		return nil, false, err
	case len(resp.GetKvs()) != 1:
		return nil, false, fmt.Errorf("etcd has %d values of key %q, want 1", len(resp.GetKvs()), key)
	}
	return resp.GetKvs()[0].GetValue(), false, nil
}

// startEtcd starts a cluster, whose leader is the node that the network names as leader.
func (cfg *Config) startEtcd(ctx context.Context, n readsbench.Network, p policy) (*store, error) {
	tick := n.Tick.Milliseconds()
	c, err := cluster.StartEtcd(ctx, cluster.EtcdConfig{
		Name: "etcd", Nodes: len(n.Sites), Dir: cfg.dir(n.Name + " etcd"),
		Links: func(from, to int) time.Duration { return n.RoundTrip(uint64(from), uint64(to)) / 2 },
		Etcd: lab.Etcd{
			Program: cfg.Etcd,
			Args:    []string{"--log-level", "warn", "--heartbeat-interval", strconv.FormatInt(tick, 10), "--election-timeout", strconv.FormatInt(electionTicks*tick, 10)},
		},
	})
	if err != nil {
		return nil, err
	}
	if err := c.HandTo(ctx, c.Nodes[n.Leader-1]); err != nil {
		return nil, errors.Join(err, c.Close())
	}
	return &store{c, followed(c.Cluster), func(address string) (client, error) {
		conn, err := nodes.Dial(address)
		return etcdClient{conn, p.name == Serializable}, err
	}}, nil
}
