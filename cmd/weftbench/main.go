// Copyright 2026 The Weft Authors
// SPDX-License-Identifier: Apache-2.0

// Command weftbench measures and torments real processes of a key-value store:
// kvdemo on Weft's core, kvdemo on upstream's, and a minimal loop on upstream's
// library that is part of this program.
//
//	weftbench host      the three side by side: time, CPU, disk, failover
//	weftbench coding    coding on beside off: time, CPU, bytes sent
//	weftbench kills     leaders and responders fail, with roster leases
//	weftbench slow      nodes are slow: what clients of the others see
//	weftbench redis     kvdemo beside redis-server, through its protocol
//	weftbench costs     what work takes of a processor, fitted to real processes
//	weftbench torture   processes killed in a loop; nothing acknowledged is lost
//	weftbench loop      one node of the minimal loop
//
// And it measures cores alone, over a simulated network in virtual time:
//
//	weftbench virtual bytes  bytes sent for a byte of payload, members failed or not
//	weftbench virtual gossip  when followers have what they know to be committed
//	weftbench virtual failover  how long nothing commits after the leader is lost
//	weftbench virtual away  what the loss and the return of a follower cost
//	weftbench adaptive     the adaptive policy beside fixed levels
//	weftbench reads        ways to serve linearizable reads, side by side
//	weftbench scale-reads  reads a second by the number of replicas
//	weftbench compartments  one compartment after the other: throughput, bottlenecks
//	weftbench papers       the figures of four papers, side by side
//	weftbench responders   a responder of roster leases fails: what writes wait
package main

import (
	"context"
	"errors"
	"fmt"
	"os"
	"os/exec"
	"os/signal"
	"path/filepath"
	"syscall"

	"github.com/spf13/cobra"

	"github.com/weftraft/weft/cmd/internal/usage"
)

func main() {
	ctx, stop := signal.NotifyContext(context.Background(), os.Interrupt, syscall.SIGTERM)
	defer stop()
	root := newRoot()
	if err := root.ExecuteContext(ctx); err != nil {
		fmt.Fprintf(os.Stderr, "weftbench: %v\n", err)
		os.Exit(1)
	}
}

func newRoot() *cobra.Command {
	root := &cobra.Command{
		Use:           "weftbench",
		Short:         "Measure and torment real processes of a key-value store, and cores alone",
		SilenceUsage:  true,
		SilenceErrors: true,
	}
	root.SetFlagErrorFunc(func(_ *cobra.Command, err error) error { return usage.Explain(err) })
	root.CompletionOptions.HiddenDefaultCmd = true
	addGroup(root, "real", "Real processes:", newHost(), newCoding(), newKills(), newSlow(), newRedis(), newYCSB(), newTorture(), newCosts(), newLoop(), newHostNode(), newTPCCNode())
	addGroup(root, "virtual", "Cores alone, in virtual time:", newVirtual(), newAdaptive(), newReads(), newScaleReads(), newResponders(), newCompartments(), newPapers())
	return root
}

// addGroup adds commands that are listed together.
func addGroup(root *cobra.Command, id, title string, commands ...*cobra.Command) {
	root.AddGroup(&cobra.Group{ID: id, Title: title})
	for _, c := range commands {
		c.GroupID = id
		root.AddCommand(c)
	}
}

// programs are the command lines of nodes.
type programs struct{ kvdemo string }

func (p *programs) add(cmd *cobra.Command) {
	cmd.Flags().StringVar(&p.kvdemo, "kvdemo", "", "the kvdemo program (default: beside weftbench, or in PATH)")
}

// find returns the path of kvdemo.
func (p *programs) find() (string, error) {
	if p.kvdemo != "" {
		return p.kvdemo, nil
	}
	self, err := os.Executable()
	if err != nil {
		return "", err
	}
	beside := filepath.Join(filepath.Dir(self), "kvdemo")
	if _, err := os.Stat(beside); err == nil {
		return beside, nil
	}
	path, err := exec.LookPath("kvdemo")
	if err != nil {
		return "", fmt.Errorf("--kvdemo: not at %s and %w; build it with: make build", beside, err)
	}
	return path, nil
}

// tempDir returns a directory and what removes it.
func tempDir(named string) (dir string, remove func() error, err error) {
	if named != "" {
		if entries, err := os.ReadDir(named); err == nil && len(entries) > 0 {
			return "", nil, fmt.Errorf("--data: %s is not empty; name another directory", named)
		}
		return named, func() error { return nil }, os.MkdirAll(named, 0o755)
	}
	dir, err = os.MkdirTemp("", "weftbench-")
	return dir, func() error { return os.RemoveAll(dir) }, err
}

// inData runs something with the path of kvdemo and a directory for the nodes' data.
func (p *programs) inData(named string, run func(kvdemo, dir string) error) (err error) {
	kvdemo, err := p.find()
	if err != nil {
		return err
	}
	return inDir(named, func(dir string) error { return run(kvdemo, dir) })
}

// inDir calls run with a directory: the named one, or a temporary one that goes afterwards.
func inDir(named string, run func(dir string) error) (err error) {
	dir, remove, err := tempDir(named)
	if err != nil {
		return err
	}
	defer func() { err = errors.Join(err, remove()) }()
	return run(dir)
}
