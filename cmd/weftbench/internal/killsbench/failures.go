// Copyright 2026 The Weft Authors
// SPDX-License-Identifier: Apache-2.0

package killsbench

import (
	"fmt"
	"time"

	"github.com/weftraft/weft/cmd/internal/cluster"
	"github.com/weftraft/weft/cmd/internal/stuck"
)

// A faltering responder stands still for faltersFor, which is longer than Fail, and then runs
// for runsFor, which is too short a time to be named again.
const (
	faltersFor = failTime + 200*time.Millisecond
	runsFor    = 200 * time.Millisecond
)

// failures are the ways in which a responder fails.
func failures() []cluster.Fault {
	return []cluster.Fault{
		{Name: "killed", About: "SIGKILL", Strike: func(_ *cluster.Cluster, v, _ *cluster.Node) (func() error, error) { return v.Start, v.Kill() }},
		{Name: "stopped", About: "SIGSTOP; it goes on at the end", Strike: func(_ *cluster.Cluster, v, _ *cluster.Node) (func() error, error) { return v.Resume, v.Pause() }},
		{Name: "faltering", About: fmt.Sprintf("SIGSTOP for %v and SIGCONT for %v, again and again", faltersFor, runsFor), Strike: func(_ *cluster.Cluster, v, _ *cluster.Node) (func() error, error) {
			return v.Falter(faltersFor, runsFor)
		}},
		{Name: "slow", About: fmt.Sprintf("all that it sends and receives takes %v", failTime), Strike: func(c *cluster.Cluster, v, _ *cluster.Node) (func() error, error) {
			return c.SlowLinks(v, failTime), nil
		}},
		{Name: "deaf", About: "nothing of the leader reaches it; it hears the others, and all hear it", Strike: func(c *cluster.Cluster, v, leader *cluster.Node) (func() error, error) {
			return c.Cut(leader, v), nil
		}},
		{Name: "mute", About: "nothing of it reaches the leader; it hears all, and the others hear it", Strike: func(c *cluster.Cluster, v, leader *cluster.Node) (func() error, error) {
			return c.Cut(v, leader), nil
		}},
		{Name: "stuck disk", About: "its disk writes nothing any more", Strike: func(_ *cluster.Cluster, v, _ *cluster.Node) (func() error, error) {
			return func() error { return v.Disk.Set(0) }, v.Disk.Set(stuck.Hangs)
		}},
	}
}
