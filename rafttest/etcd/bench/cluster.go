// Copyright 2026 The Weft Authors
// SPDX-License-Identifier: Apache-2.0

package bench

import (
	"context"
	"errors"
	"fmt"
	"time"

	clientv3 "go.etcd.io/etcd/client/v3"
	"go.uber.org/zap"

	"github.com/weftraft/weft/internal/lab"
	"github.com/weftraft/weft/internal/process"
	"github.com/weftraft/weft/rafttest/etcd/disk"
)

// member is an etcd process with its own client.
type member struct {
	*lab.Node
	api *clientv3.Client
}

type cluster struct {
	*lab.Cluster
	side    Side
	members []*member
}

// start starts an empty cluster on the hosts of a network, a member on each host, and waits until
// all members follow the same leader.
func start(ctx context.Context, side Side, net *lab.Network, dir string) (_ *cluster, err error) {
	c := &cluster{side: side}
	c.Cluster, err = lab.StartCluster(ctx, lab.ClusterConfig{
		Name: side.Name, Nodes: len(net.Hosts), Network: net, Dir: dir,
		Program: lab.Etcd{Program: side.Program, Env: func(int) []string { return side.Env }},
	})
	if err != nil {
		return nil, err
	}
	defer func() {
		if err != nil {
			err = errors.Join(err, c.stop())
		}
	}()
	for _, n := range c.Nodes {
		m := &member{Node: n}
		c.members = append(c.members, m)
		if m.api, err = dial(n.Client); err != nil {
			return nil, err
		}
	}
	_, _, err = c.leader(ctx)
	return c, err
}

func dial(address string) (*clientv3.Client, error) {
	return clientv3.New(clientv3.Config{Endpoints: []string{"http://" + address}, DialTimeout: time.Minute, Logger: zap.NewNop()})
}

// leader returns the member that all members follow, and the term.
func (c *cluster) leader(ctx context.Context) (*member, uint64, error) {
	n, term, err := c.Lead(ctx)
	if err != nil {
		return nil, 0, err
	}
	return c.members[n.ID-1], term, nil
}

// reading is the usage of the members, and the bytes that they have sent, since their start.
type reading struct {
	process.Usage       // of all members
	leaderSent, allSent uint64
	machine             machine
}

func (c *cluster) read(leader *member) (r reading, err error) {
	for _, m := range c.members {
		sent, err := m.Sent()
		if err != nil {
			return r, err
		}
		r.allSent += sent
		if m == leader {
			r.leaderSent = sent
		}
	}
	if r.machine, err = readMachine(); err != nil {
		return r, err
	}
	r.Usage, err = c.Usage()
	return r, err
}

// settleLimit bounds the wait until members rest.
const settleLimit = 10 * time.Second

var errCoding = errors.New("what the logs hold is not what the side is for")

// stop ends all members.
func (c *cluster) stop() error {
	errs := []error{c.Close()}
	for _, m := range c.members {
		if m.api != nil {
			errs = append(errs, m.api.Close())
		}
	}
	return errors.Join(errs...)
}

// checkLogs reads the logs of stopped members: on a side with Codes the logs have coded entries if the values were large
// enough, and on any other side they have none. Processors that are all busy have full copies replace coding after the first
// entries; so a log that etcd has shortened may have none left.
func (c *cluster) checkLogs(large bool) error {
	for _, m := range c.members {
		l, err := disk.Read(m.Data, "")
		if err != nil {
			return err
		}
		if codes := c.side.Codes && large; l.Coded > 0 != codes && !(codes && l.First > 1) {
			return fmt.Errorf("%w: side %s, log of member %d: %v", errCoding, c.side.Name, m.ID, l)
		}
	}
	return nil
}
