// Copyright 2026 The Weft Authors
// SPDX-License-Identifier: Apache-2.0

package slowbench

import (
	"fmt"
	"slices"
	"time"

	"github.com/weftraft/weft/cmd/internal/cluster"
	"github.com/weftraft/weft/cmd/internal/stuck"
)

// strike is the function of a fault.
type strike = func(c *cluster.Cluster, v, leader *cluster.Node) (heal func() error, err error)

// faults returns what can happen to a node. The first one is the yardstick: a node that is slow should
// cost no more than one that is dead.
func (c Config) faults() []cluster.Fault {
	disk := func(by time.Duration) strike {
		return func(_ *cluster.Cluster, v, _ *cluster.Node) (func() error, error) {
			return func() error { return v.Disk.Set(c.Sync) }, v.Disk.Set(by)
		}
	}
	return []cluster.Fault{
		{Name: "dead", About: "SIGKILL", Strike: func(_ *cluster.Cluster, v, _ *cluster.Node) (func() error, error) { return v.Start, v.Kill() }},
		{Name: "hang", About: "its disk hangs: writes and syncs wait, and no error comes", Strike: disk(stuck.Hangs)},
		{Name: "disk", About: fmt.Sprintf("a sync takes %v longer at its disk, not %v", slower*c.Sync, c.Sync), Strike: disk(slower * c.Sync)},
		{
			Name: "cpu", About: fmt.Sprintf("of %v, its process stands still for %v (SIGSTOP, SIGCONT)", slice, slice-slice/slower),
			Strike: func(_ *cluster.Cluster, v, _ *cluster.Node) (func() error, error) {
				return v.Falter(slice-slice/slower, slice/slower)
			},
		},
		{
			Name: "link", About: fmt.Sprintf("what it sends and receives takes %v, not %v", slower*c.Link, c.Link),
			Strike: func(cl *cluster.Cluster, v, _ *cluster.Node) (func() error, error) {
				return cl.SlowLinks(v, (slower-1)*c.Link), nil
			},
		},
		{Name: "mute", About: "nothing that it sends arrives; it hears all", Strike: func(cl *cluster.Cluster, v, _ *cluster.Node) (func() error, error) {
			return cl.Cut(v, cl.Nodes...), nil
		}},
	}
}

// Names returns the names of all faults.
func Names() (all []string) {
	for _, f := range (Config{}).faults() {
		all = append(all, f.Name)
	}
	return all
}

// ofDisk reports whether a fault is one of a disk.
func ofDisk(name string) bool { return name == "hang" || name == "disk" }

// fault returns the fault of a name.
func (c Config) fault(name string) cluster.Fault {
	all := c.faults()
	return all[slices.IndexFunc(all, func(f cluster.Fault) bool { return f.Name == name })]
}
