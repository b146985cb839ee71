// Copyright 2026 The Weft Authors
// SPDX-License-Identifier: Apache-2.0

package cluster

import (
	"context"
	"errors"
	"fmt"
	"io"
	"net"
	"os"
	"path/filepath"
	"strconv"
	"strings"
	"sync"
	"sync/atomic"
	"time"

	"github.com/weftraft/weft/internal/lab"
)

// ZooKeeperConfig says which servers of ZooKeeper to run.
type ZooKeeperConfig struct {
	Jar    string // Debian's /usr/share/java/zookeeper.jar, whose manifest names the others
	Nodes  int
	Leader int                              // who is to lead, from 1 on
	Dir    string                           // for data, made here
	Links  func(from, to int) time.Duration // the time between two servers, in one direction
}

// ZooKeeper is a cluster of ZooKeeper whose servers are some time from each other.
//
// A server waits for the others at two ports: one for elections, and one where the leader's followers connect. Each server
// is told addresses of its own for the others, so that its connections are known by where they arrive.
type ZooKeeper struct {
	*lab.Cluster
	cfg     ZooKeeperConfig
	network *lab.Network // hosts 1 to Nodes are the ports for followers, those behind them the ports for elections
	up      atomic.Bool  // a leader is there: until then the links have no delays, so that all take part in its election
	doors   map[[2]int]net.Listener
	group   sync.WaitGroup
}

// StartZooKeeper starts all servers, and waits until all answer. The error is [lab.ErrDisturbed] if another server leads
// than the one that is to, because ZooKeeper cannot hand over.
func StartZooKeeper(ctx context.Context, cfg ZooKeeperConfig) (_ *ZooKeeper, err error) {
	z := &ZooKeeper{cfg: cfg, doors: map[[2]int]net.Listener{}}
	defer func() {
		if err != nil {
			err = errors.Join(err, z.Close())
		}
	}()
	if z.network, err = lab.NewNetwork(lab.NetworkConfig{Hosts: 2 * cfg.Nodes, Kind: lab.Relay, Delay: z.delay}); err != nil {
		return nil, err
	}
	for from := 1; from <= cfg.Nodes; from++ {
		for host := 1; host <= 2*cfg.Nodes; host++ {
			if z.server(host) == from {
				continue
			}
			if err := z.door(from, host); err != nil {
				return nil, err
			}
		}
	}
	z.Cluster, err = lab.StartCluster(ctx, lab.ClusterConfig{Name: "ZooKeeper", Nodes: cfg.Nodes, Network: z.network, Dir: cfg.Dir, Program: z})
	if err != nil {
		return nil, err
	}
	leader, err := z.Leader()
	if err == nil && leader != cfg.Leader {
		err = fmt.Errorf("server %d of ZooKeeper leads, not %d: %w", leader, cfg.Leader, lab.ErrDisturbed)
	}
	z.up.Store(true)
	return z, err
}

func (z *ZooKeeper) delay(from, to int) time.Duration {
	if !z.up.Load() {
		return 0
	}
	return z.cfg.Links(z.server(from), z.server(to))
}

// server returns whose port a host of the network is.
func (z *ZooKeeper) server(host int) int { return (host-1)%z.cfg.Nodes + 1 }

// door makes the address at which one server finds a port of another.
func (z *ZooKeeper) door(from, host int) error {
	l, err := net.Listen("tcp", "127.0.0.1:0")
	if err != nil {
		return err
	}
	z.doors[[2]int{from, host}] = l
	z.group.Go(func() {
		for {
			in, err := l.Accept()
			if err != nil {
				return // it was closed
			}
			z.group.Go(func() { z.carry(in, from, host) })
		}
	})
	return nil
}

// carry carries bytes between a connection of a server and a port of another, until either ends.
func (z *ZooKeeper) carry(in net.Conn, from, host int) {
	out, err := z.network.Links.Dial(context.Background(), from, host)
	if err != nil {
		_ = in.Close() // the port is not open yet
		return
	}
	both := func() { _ = errors.Join(in.Close(), out.Close()) } // which ends the other direction
	z.group.Go(func() {
		defer both()
		_, _ = io.Copy(out, in) // until one of them is closed
	})
	defer both()
	_, _ = io.Copy(in, out) // until one of them is closed
}

// Command implements [lab.Program]. Of servers with the same log, the one with the largest number is elected, so the
// leader has one behind the others.
func (z *ZooKeeper) Command(c *lab.Cluster, n *lab.Node) []string {
	_, client, _ := net.SplitHostPort(n.Client)
	lines := []string{
		"tickTime=1000", "initLimit=10", "syncLimit=5", "admin.enableServer=false", "4lw.commands.whitelist=srvr", "maxClientCnxns=0",
		"dataDir=" + n.Data, "clientPortAddress=127.0.0.1", "clientPort=" + client,
	}
	for _, m := range c.Nodes {
		peer, election := z.port(n.ID, m.ID), z.port(n.ID, m.ID+z.cfg.Nodes)
		lines = append(lines, fmt.Sprintf("server.%d=127.0.0.1:%s:%s", z.number(m.ID), peer, election))
	}
	file := filepath.Join(n.Data, "zoo.cfg")
	if err := errors.Join(os.MkdirAll(n.Data, 0o755), os.WriteFile(filepath.Join(n.Data, "myid"), []byte(strconv.Itoa(z.number(n.ID))), 0o644),
		os.WriteFile(file, []byte(strings.Join(lines, "\n")+"\n"), 0o644)); err != nil {
		return []string{"sh", "-c", `echo "$0" >&2; exit 1`, err.Error()} // the node's log and error have it
	}
	return []string{"java", "-Xmx512m", "-cp", z.cfg.Jar, "org.apache.zookeeper.server.quorum.QuorumPeerMain", file}
}

// number is a server's name for itself and the others.
func (z *ZooKeeper) number(id int) int {
	if id == z.cfg.Leader {
		return z.cfg.Nodes + 1
	}
	return id
}

// port returns the port at which a server finds a host: its own are the true ones.
func (z *ZooKeeper) port(from, host int) string {
	address := z.network.Hosts[host-1].Listen
	if z.server(host) != from {
		address = z.doors[[2]int{from, host}].Addr().String()
	}
	_, port, _ := net.SplitHostPort(address)
	return port
}

// Status implements [lab.Program]. A server that follows does not say whom.
func (z *ZooKeeper) Status(ctx context.Context, n *lab.Node) (s lab.Status, err error) {
	conn, err := (&net.Dialer{}).DialContext(ctx, "tcp", n.Client)
	if err != nil {
		return s, err
	}
	defer func() { _ = conn.Close() }() // only read
	deadline, _ := ctx.Deadline()
	if err = conn.SetDeadline(deadline); err != nil {
		return s, err
	}
	if _, err := io.WriteString(conn, "srvr"); err != nil {
		return s, err
	}
	said, err := io.ReadAll(io.LimitReader(conn, 1<<16))
	switch s.ID = uint64(n.ID); {
	case err != nil:
		return s, err
	case strings.Contains(string(said), "Mode: leader"):
		s.Leader = s.ID
	case !strings.Contains(string(said), "Mode: follower"):
		return s, fmt.Errorf("server %d of ZooKeeper says %q, want its mode", n.ID, said)
	}
	return s, nil
}

// Leader returns who leads.
func (z *ZooKeeper) Leader() (id int, err error) {
	ctx, cancel := context.WithTimeout(context.Background(), 2*time.Second)
	defer cancel()
	for _, n := range z.Nodes {
		s, err := z.Status(ctx, n)
		if err != nil {
			return 0, err
		}
		if s.Leader == s.ID {
			id = n.ID
		}
	}
	return id, nil
}

// Transfer implements [lab.Program].
func (z *ZooKeeper) Transfer(context.Context, *lab.Node, *lab.Node) error {
	return errors.New("ZooKeeper cannot hand leadership over")
}

// Close ends the servers, and takes the links down.
func (z *ZooKeeper) Close() (err error) {
	if z.Cluster != nil {
		err = z.Cluster.Close()
	}
	for _, l := range z.doors {
		err = errors.Join(err, l.Close())
	}
	if z.network != nil {
		err = errors.Join(err, z.network.Close())
	}
	z.group.Wait()
	return err
}
