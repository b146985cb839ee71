// Copyright 2026 The Weft Authors
// SPDX-License-Identifier: Apache-2.0

package torture

import (
	"context"
	"errors"
	"fmt"
	"slices"
	"strconv"

	"google.golang.org/grpc"

	"github.com/weftraft/weft/cmd/internal/cluster"
	"github.com/weftraft/weft/cmd/internal/nodes"
	"github.com/weftraft/weft/cmd/kvdemo/kvpb"
	"github.com/weftraft/weft/internal/lab"
)

// gates are the gateways of a cluster.
type gates struct {
	*lab.Cluster
	program *gateProgram
	conns   []*grpc.ClientConn
}

// gateProgram is the program of a gateway of a cluster.
type gateProgram struct {
	*nodes.Program
	command []string
	of      *cluster.Cluster
}

// firstGate is above the ids of nodes.
const firstGate = 101

// Command implements [lab.Program].
func (p *gateProgram) Command(_ *lab.Cluster, n *lab.Node) []string {
	return slices.Concat(p.command, []string{"--id", strconv.Itoa(firstGate - 1 + n.ID), "--cluster", strconv.FormatUint(p.of.Number, 10),
		"--peers", p.of.Peers(), "--listen", n.Listen, "--client-listen", n.Client, "--tick", "20ms"})
}

func startGates(ctx context.Context, cfg Config, of *cluster.Cluster, dir string) (*gates, error) {
	g := &gates{program: &gateProgram{nodes.New(lab.Serve{}), cfg.Gateway, of}}
	var err error
	g.Cluster, err = lab.StartCluster(ctx, lab.ClusterConfig{Name: "gateways", Program: g.program, Nodes: cfg.Gateways, Dir: dir})
	if err != nil {
		return nil, errors.Join(err, g.program.Close())
	}
	for _, n := range g.Nodes {
		conn, err := g.program.Conn(n)
		if err != nil {
			return nil, errors.Join(err, g.close())
		}
		g.conns = append(g.conns, conn)
	}
	return g, nil
}

// clients returns one for each gateway.
func (g *gates) clients() (all []kvpb.KVClient) {
	if g != nil {
		for _, c := range g.conns {
			all = append(all, kvpb.NewKVClient(c))
		}
	}
	return all
}

// close kills the gateways, which have nothing to lose.
func (g *gates) close() error {
	if g == nil {
		return nil
	}
	return errors.Join(g.Close(), g.program.Close())
}

// strikeGates kills gateways, or stops one for a while: one half of the time, all one time in ten. heal has all run again.
func (r *run) strikeGates() (heal func() error, done string, err error) {
	if r.gates == nil {
		return func() error { return nil }, "", nil
	}
	all := r.gates.Nodes
	i := r.rng.IntN(len(all))
	struck, strike, mend := all[i:i+1], (*lab.Node).Kill, (*lab.Node).Start
	switch x := r.rng.IntN(100); {
	case x < 40:
		struck = nil
	case x < 65:
		r.sum.GatesKilled++
		done = fmt.Sprint(" gateway ", firstGate+i)
	case x < 90:
		r.sum.GatesPaused++
		strike, mend = (*lab.Node).Pause, (*lab.Node).Resume
	default:
		r.sum.GatesKilled += len(all)
		struck, done = all, " all gateways"
	}
	for _, n := range struck {
		err = errors.Join(err, strike(n))
	}
	return func() (err error) {
		for _, n := range struck {
			err = errors.Join(err, mend(n))
		}
		return err
	}, done, err
}
