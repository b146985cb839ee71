// Copyright 2026 The Weft Authors
// SPDX-License-Identifier: Apache-2.0

package cluster

import (
	"context"
	"errors"
	"time"

	"github.com/weftraft/weft/internal/lab"
)

// EtcdConfig says which members of etcd to run. Peer of the program, and the variables of proxies, are set
// here.
type EtcdConfig struct {
	lab.Etcd
	Name  string // of the cluster, for messages
	Nodes int
	Dir   string                           // for data, made here
	Links func(from, to int) time.Duration // the time between two members, in one direction; nil: none, and no proxies
}

// Etcd is a cluster of etcd whose members may be some time from each other.
type Etcd struct {
	*lab.Cluster
	network *lab.Network // nil without Links, as proxies
	proxies *proxies
}

// StartEtcd starts all members, and waits until all answer.
func StartEtcd(ctx context.Context, cfg EtcdConfig) (_ *Etcd, err error) {
	s := &Etcd{}
	if cfg.Links != nil {
		if err := s.between(&cfg); err != nil {
			return nil, err
		}
	}
	s.Cluster, err = lab.StartCluster(ctx, lab.ClusterConfig{Name: cfg.Name, Nodes: cfg.Nodes, Network: s.network, Dir: cfg.Dir, Program: cfg.Etcd})
	if err != nil {
		return nil, errors.Join(err, s.Close())
	}
	return s, nil
}

// Struck returns the members as the nodes of a cluster, for faults of their processes and links. They have neither
// kvdemo's service nor disks that can be slow. Close closes the members, too.
func (s *Etcd) Struck() *Cluster {
	c := &Cluster{Cluster: s.Cluster, program: s}
	for _, n := range s.Nodes {
		c.Nodes = append(c.Nodes, &Node{Node: n})
	}
	return c
}

// between makes the links, and a proxy for each member.
func (s *Etcd) between(cfg *EtcdConfig) (err error) {
	if s.network, err = lab.NewNetwork(lab.NetworkConfig{Hosts: cfg.Nodes, Kind: lab.Relay, Delay: cfg.Links}); err != nil {
		return err
	}
	if s.proxies, err = startProxies(s.network.Links, cfg.Nodes); err != nil {
		return errors.Join(err, s.Close())
	}
	variables := cfg.Env
	cfg.Peer, cfg.Env = peerURL, func(id int) (env []string) {
		if variables != nil {
			env = variables(id)
		}
		return append(env, "HTTP_PROXY="+s.proxies.url(id), "http_proxy=", "NO_PROXY=", "no_proxy=")
	}
	return nil
}

// Close ends the members, and takes the links down.
func (s *Etcd) Close() (err error) {
	if s.Cluster != nil {
		err = s.Cluster.Close()
	}
	if s.proxies != nil {
		err = errors.Join(err, s.proxies.close())
	}
	if s.network != nil {
		err = errors.Join(err, s.network.Close())
	}
	return err
}
