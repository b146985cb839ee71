// Copyright 2026 The Weft Authors
// SPDX-License-Identifier: Apache-2.0

package bench

import (
	"context"
	"errors"
	"fmt"
	"os"
	"path/filepath"
	"strings"
	"time"

	clientv3 "go.etcd.io/etcd/client/v3"
	"go.uber.org/zap"

	"github.com/weftraft/weft/internal/netlab"
	"github.com/weftraft/weft/internal/process"
	"github.com/weftraft/weft/rafttest/etcd/disk"
)

// patience bounds each wait for an event that must happen in the end.
const patience = time.Minute

// member is an etcd process with its own client.
type member struct {
	name string
	host netlab.Host
	dir  string
	url  string
	proc *process.Process
	api  *clientv3.Client
}

type cluster struct {
	side    Side
	dir     string
	members []*member
}

// start starts an empty cluster on the hosts of a network, a member on each host, and waits until
// all members follow the same leader.
func start(ctx context.Context, side Side, net *netlab.Network, dir string) (_ *cluster, err error) {
	c := &cluster{side: side, dir: dir}
	defer func() {
		if err != nil {
			err = errors.Join(err, c.stop())
		}
	}()
	var initial []string
	for i, h := range net.Hosts {
		initial = append(initial, fmt.Sprintf("m%d=http://%s", i+1, h.Address))
	}
	for i, h := range net.Hosts {
		m := &member{name: fmt.Sprintf("m%d", i+1), host: h, url: "http://" + h.Client}
		m.dir = filepath.Join(dir, m.name)
		if err := os.MkdirAll(m.dir, 0o700); err != nil {
			return nil, err
		}
		args := append(append([]string{"env"}, side.Env...), side.Program,
			"--name", m.name, "--data-dir", m.dir,
			"--listen-client-urls", m.url, "--advertise-client-urls", m.url,
			"--listen-peer-urls", "http://"+h.Listen, "--initial-advertise-peer-urls", "http://"+h.Address,
			"--initial-cluster", strings.Join(initial, ","), "--initial-cluster-state", "new",
			"--initial-cluster-token", filepath.Base(dir), "--log-outputs", "stderr")
		if m.proc, err = process.Start(h.Command(args...), filepath.Join(dir, m.name+".log")); err != nil {
			return nil, err
		}
		c.members = append(c.members, m)
		if m.api, err = dial(m.url); err != nil {
			return nil, err
		}
	}
	_, _, err = c.leader(ctx)
	return c, err
}

func dial(url string) (*clientv3.Client, error) {
	return clientv3.New(clientv3.Config{Endpoints: []string{url}, DialTimeout: patience, Logger: zap.NewNop()})
}

// until calls f until f returns no error, for at most patience. until gives up when a member has
// ended.
func (c *cluster) until(ctx context.Context, what string, f func() error) error {
	ctx, cancel := context.WithTimeout(ctx, patience)
	defer cancel()
	for {
		err := f()
		if err == nil {
			return nil
		}
		for _, m := range c.members {
			if !m.proc.Running() {
				return fmt.Errorf("%s: %s of %s: %w", what, m.name, c.side.Name, m.proc.Unexpected())
			}
		}
		select {
		case <-ctx.Done():
			return fmt.Errorf("%s: %s: not within %v: %w; logs are in %s", c.side.Name, what, patience, err, c.dir)
		case <-time.After(20 * time.Millisecond):
		}
	}
}

var errNoLeader = errors.New("the members do not follow one leader yet")

// leader returns the member that all members follow, and the term.
func (c *cluster) leader(ctx context.Context) (leader *member, term uint64, err error) {
	err = c.until(ctx, "finding the leader", func() error {
		leader = nil
		var lead uint64
		for i, m := range c.members {
			s, err := m.status(ctx)
			if err != nil {
				return err
			}
			if i == 0 {
				lead, term = s.Leader, s.RaftTerm
			}
			if s.Leader == 0 || s.Leader != lead || s.RaftTerm != term {
				return errNoLeader
			}
			if s.Header.MemberId == lead {
				leader = m
			}
		}
		if leader == nil {
			return errNoLeader
		}
		return nil
	})
	return leader, term, err
}

func (m *member) status(ctx context.Context) (*clientv3.StatusResponse, error) {
	ctx, cancel := context.WithTimeout(ctx, 2*time.Second)
	defer cancel()
	return m.api.Status(ctx, m.url)
}

// usage adds up the usage of all members.
func (c *cluster) usage() (sum process.Usage, err error) {
	for _, m := range c.members {
		u, err := m.proc.Usage()
		if err != nil {
			return sum, err
		}
		sum = sum.Add(u)
	}
	return sum, nil
}

// reading is the usage of the members, and the bytes that they have sent, since their start.
type reading struct {
	process.Usage       // of all members
	leaderSent, allSent uint64
	machine             machine
}

func (c *cluster) read(leader *member) (r reading, err error) {
	for _, m := range c.members {
		sent, err := m.host.Sent()
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
	r.Usage, err = c.usage()
	return r, err
}

// settle waits until the members are idle after a load: work that a member has postponed is a part
// of the load's cost.
func (c *cluster) settle(ctx context.Context) error {
	const (
		step  = 100 * time.Millisecond
		steps = 3                    // of idleness: etcd writes its data a tenth of a second late
		rest  = 4 * time.Millisecond // processor time of an idle member in a step
		limit = 10 * time.Second
	)
	last, err := c.usage()
	for calm, end := 0, time.Now().Add(limit); err == nil && calm < steps && time.Now().Before(end); {
		select {
		case <-ctx.Done():
			return ctx.Err()
		case <-time.After(step):
		}
		var now process.Usage
		now, err = c.usage()
		if calm++; now.CPU-last.CPU > rest*time.Duration(len(c.members)) {
			calm = 0
		}
		last = now
	}
	return err
}

var errCoding = errors.New("what the logs hold is not what the side is for")

// stop ends all members.
func (c *cluster) stop() error {
	var errs []error
	for _, m := range c.members {
		errs = append(errs, m.proc.Kill())
		if m.api != nil {
			errs = append(errs, m.api.Close())
		}
	}
	return errors.Join(errs...)
}

// checkLogs reads the logs of stopped members: on a side with Codes the logs have coded entries if
// the values were large enough, and on any other side they have none.
func (c *cluster) checkLogs(large bool) error {
	for _, m := range c.members {
		l, err := disk.Read(m.dir, "")
		if err != nil {
			return err
		}
		if (l.Coded > 0) != (c.side.Codes && large) {
			return fmt.Errorf("%w: side %s, log of %s: %v", errCoding, c.side.Name, m.name, l)
		}
	}
	return nil
}
