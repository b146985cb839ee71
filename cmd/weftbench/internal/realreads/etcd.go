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

	"github.com/weftraft/weft/cmd/weftbench/internal/readsbench"
	"github.com/weftraft/weft/internal/lab"
)

// electionTicks are how many heartbeats make an election timeout, as at kvdemo.
const electionTicks = 10

// etcd is a cluster of released etcd.
type etcd struct {
	*lab.Cluster
	network *lab.Network
	proxies *proxies
}

func (s *etcd) addresses() []string { return s.Clients() }

func (s *etcd) close() (err error) {
	if s.Cluster != nil {
		err = s.Cluster.Close()
	}
	if s.proxies != nil {
		err = errors.Join(err, s.proxies.close())
	}
	return errors.Join(err, s.network.Close())
}

func (s *etcd) put(ctx context.Context, conn grpc.ClientConnInterface, key string, value []byte) error {
	_, err := etcdserverpb.NewKVClient(conn).Put(ctx, &etcdserverpb.PutRequest{Key: []byte(key), Value: value})
	return err
}

// get is a linearizable read, as etcd's are unless a client asks for another: the member that
// is asked asks the leader, which asks a majority.
func (s *etcd) get(ctx context.Context, conn grpc.ClientConnInterface, key string) (value []byte, local bool, err error) {
	resp, err := etcdserverpb.NewKVClient(conn).Range(ctx, &etcdserverpb.RangeRequest{Key: []byte(key)})
	switch {
	case err != nil:
		return nil, false, err
	case len(resp.GetKvs()) != 1:
		return nil, false, fmt.Errorf("etcd has %d values of key %q, want 1", len(resp.GetKvs()), key)
	}
	return resp.GetKvs()[0].GetValue(), false, nil
}

// leader implements store.
func (s *etcd) leader(ctx context.Context) (uint64, error) {
	n, _, err := s.Lead(ctx)
	if err != nil {
		return 0, err
	}
	return uint64(n.ID), nil
}

// startEtcd starts a cluster, whose leader is the node that the network names as leader.
func (cfg *Config) startEtcd(ctx context.Context, n readsbench.Network, _ policy) (_ store, err error) {
	s, size := &etcd{}, len(n.Sites)
	s.network, err = lab.NewNetwork(lab.NetworkConfig{
		Hosts: size, Kind: lab.Relay, Delay: func(from, to int) time.Duration { return n.RoundTrip(uint64(from), uint64(to)) / 2 },
	})
	if err != nil {
		return nil, err
	}
	defer func() {
		if err != nil {
			err = errors.Join(err, s.close())
		}
	}()
	if s.proxies, err = startProxies(s.network.Links, size); err != nil {
		return nil, err
	}
	tick := n.Tick.Milliseconds()
	s.Cluster, err = lab.StartCluster(ctx, lab.ClusterConfig{
		Name: "etcd", Nodes: size, Network: s.network, Dir: cfg.dir(n.Name + " etcd"),
		Program: lab.Etcd{
			Program: cfg.Etcd, Peer: peerURL,
			Env: func(id int) []string {
				return []string{"HTTP_PROXY=" + s.proxies.url(id), "http_proxy=", "NO_PROXY=", "no_proxy="}
			},
			Args: []string{"--log-level", "warn", "--heartbeat-interval", strconv.FormatInt(tick, 10), "--election-timeout", strconv.FormatInt(electionTicks*tick, 10)},
		},
	})
	if err != nil {
		return nil, err
	}
	return s, s.HandTo(ctx, s.Nodes[n.Leader-1])
}
