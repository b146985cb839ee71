// Copyright 2026 The Weft Authors
// SPDX-License-Identifier: Apache-2.0

package realreads

import (
	"context"
	"errors"
	"fmt"
	"math/rand/v2"
	"os"
	"path/filepath"
	"strconv"
	"strings"
	"time"

	"go.etcd.io/etcd/api/v3/etcdserverpb"
	"google.golang.org/grpc"

	"github.com/weftraft/weft/cmd/weftbench/internal/cluster"
	"github.com/weftraft/weft/cmd/weftbench/internal/lab"
	"github.com/weftraft/weft/cmd/weftbench/internal/readsbench"
	"github.com/weftraft/weft/internal/ports"
	"github.com/weftraft/weft/internal/process"
)

// electionTicks are how many heartbeats make an election timeout, as at kvdemo.
const electionTicks = 10

// etcd is a cluster of released etcd.
type etcd struct {
	clients []string // addresses
	conns   []*grpc.ClientConn
	nodes   []*process.Process
	links   *lab.Links
	proxies *proxies
}

func (s *etcd) addresses() []string { return s.clients }

func (s *etcd) close() (err error) {
	for _, p := range s.nodes {
		err = errors.Join(err, p.Kill())
	}
	for _, c := range s.conns {
		err = errors.Join(err, c.Close())
	}
	if s.proxies != nil {
		err = errors.Join(err, s.proxies.close())
	}
	if s.links != nil {
		err = errors.Join(err, s.links.Close())
	}
	return err
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

// members returns what all members say of themselves, or an error if one does not answer.
func (s *etcd) members(ctx context.Context) (list []*etcdserverpb.StatusResponse, err error) {
	ctx, cancel := context.WithTimeout(ctx, 2*time.Second)
	defer cancel()
	for _, c := range s.conns {
		m, err := etcdserverpb.NewMaintenanceClient(c).Status(ctx, &etcdserverpb.StatusRequest{})
		if err != nil {
			return nil, err
		}
		list = append(list, m)
	}
	return list, nil
}

// leader implements store. All members have to agree.
func (s *etcd) leader(ctx context.Context) (uint64, error) {
	list, err := s.members(ctx)
	if err != nil {
		return 0, err
	}
	site := uint64(0)
	for i, m := range list {
		if m.GetLeader() != list[0].GetLeader() {
			return 0, fmt.Errorf("members take %x and %x for the leader: %w", m.GetLeader(), list[0].GetLeader(), errElection)
		}
		if m.GetLeader() == m.GetHeader().GetMemberId() {
			site = uint64(i) + 1
		}
	}
	return site, nil
}

// startEtcd starts a cluster whose leader is that of the network.
func (cfg *Config) startEtcd(ctx context.Context, n readsbench.Network, _ policy) (_ store, err error) {
	s := &etcd{}
	defer func() {
		if err != nil {
			err = errors.Join(err, s.close())
		}
	}()
	free, err := ports.Free(2 * len(n.Sites))
	if err != nil {
		return nil, err
	}
	peers, clients := free[:len(n.Sites)], free[len(n.Sites):]
	s.clients = clients
	if s.links, err = lab.New(peers, func(from, to int) time.Duration { return n.RoundTrip(uint64(from), uint64(to)) / 2 }); err != nil {
		return nil, err
	}
	if s.proxies, err = startProxies(s.links, len(peers)); err != nil {
		return nil, err
	}
	dir := cfg.dir(n.Name + " etcd")
	if err := os.MkdirAll(dir, 0o755); err != nil {
		return nil, err
	}
	var all []string
	for i := range peers {
		all = append(all, fmt.Sprintf("n%d=%s", i+1, peerURL(i+1)))
	}
	token := strconv.FormatUint(rand.Uint64(), 16)
	for i := range peers {
		p, err := process.Start([]string{
			"env", "HTTP_PROXY=" + s.proxies.url(i+1), "http_proxy=", "NO_PROXY=", "no_proxy=",
			cfg.Etcd, "--name", fmt.Sprintf("n%d", i+1), "--data-dir", filepath.Join(dir, strconv.Itoa(i+1)), "--log-level", "warn",
			"--listen-peer-urls", "http://" + peers[i], "--initial-advertise-peer-urls", peerURL(i + 1),
			"--listen-client-urls", "http://" + clients[i], "--advertise-client-urls", "http://" + clients[i],
			"--initial-cluster", strings.Join(all, ","), "--initial-cluster-state", "new", "--initial-cluster-token", token,
			"--heartbeat-interval", strconv.FormatInt(n.Tick.Milliseconds(), 10), "--election-timeout", strconv.FormatInt(electionTicks*n.Tick.Milliseconds(), 10),
		}, filepath.Join(dir, fmt.Sprintf("%d.log", i+1)))
		if err != nil {
			return nil, err
		}
		s.nodes = append(s.nodes, p)
		conn, err := cluster.Dial(clients[i])
		if err != nil {
			return nil, err
		}
		s.conns = append(s.conns, conn)
	}
	if err := s.handTo(ctx, n.Leader); err != nil {
		return nil, fmt.Errorf("%w; the members' logs are in %s", err, dir)
	}
	return s, nil
}

// handTo has the member of a site lead: whichever leads is asked to hand over, again and again.
func (s *etcd) handTo(ctx context.Context, site uint64) error {
	var last error
	for end := time.Now().Add(time.Minute); time.Now().Before(end); {
		for i, p := range s.nodes {
			if !p.Running() {
				return fmt.Errorf("member %d of etcd: %w", i+1, p.Unexpected())
			}
		}
		var lead uint64
		if lead, last = s.leader(ctx); last == nil && lead == site {
			return nil
		}
		if lead != 0 {
			last = s.moveLeader(ctx, lead, site)
		}
		select {
		case <-ctx.Done():
			return context.Cause(ctx)
		case <-time.After(100 * time.Millisecond):
		}
	}
	return fmt.Errorf("member %d of etcd does not lead after a minute: %w", site, last)
}

func (s *etcd) moveLeader(ctx context.Context, from, to uint64) error {
	list, err := s.members(ctx)
	if err != nil {
		return err
	}
	ctx, cancel := context.WithTimeout(ctx, 5*time.Second)
	defer cancel()
	_, err = etcdserverpb.NewMaintenanceClient(s.conns[from-1]).MoveLeader(ctx, &etcdserverpb.MoveLeaderRequest{TargetID: list[to-1].GetHeader().GetMemberId()})
	return err
}
