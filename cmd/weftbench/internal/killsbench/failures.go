// Copyright 2026 The Weft Authors
// SPDX-License-Identifier: Apache-2.0

package killsbench

import (
	"errors"
	"fmt"
	"os"
	"path/filepath"
	"sync"
	"time"

	"github.com/weftraft/weft/cmd/weftbench/internal/cluster"
)

// failure is a way in which a responder fails. strike has the victim fail, and returns what
// makes the victim well again.
type failure struct {
	name, about string
	strike      func(s *side, victim, leader *cluster.Node) (heal func() error, err error)
}

// A faltering responder stands still for faltersFor, which is longer than Fail, and then runs
// for runsFor, which is too short a time to be named again.
const (
	faltersFor = failTime + 200*time.Millisecond
	runsFor    = 200 * time.Millisecond
)

func failures() []failure {
	return []failure{
		{"killed", "SIGKILL", func(_ *side, v, _ *cluster.Node) (func() error, error) { return v.Start, v.Kill() }},
		{"stopped", "SIGSTOP; it goes on at the end", func(_ *side, v, _ *cluster.Node) (func() error, error) { return v.Resume, v.Pause() }},
		{"faltering", fmt.Sprintf("SIGSTOP for %v and SIGCONT for %v, again and again", faltersFor, runsFor), falter},
		{"slow", fmt.Sprintf("all that it sends and receives takes %v", failTime), slow},
		{"deaf", "nothing of the leader reaches it; it hears the others, and all hear it", func(s *side, v, leader *cluster.Node) (func() error, error) {
			return s.cut(leader.ID, v.ID), nil
		}},
		{"mute", "nothing of it reaches the leader; it hears all, and the others hear it", func(s *side, v, leader *cluster.Node) (func() error, error) {
			return s.cut(v.ID, leader.ID), nil
		}},
		{"stuck disk", "its disk writes nothing any more", func(s *side, v, _ *cluster.Node) (func() error, error) {
			file := s.stuckDisk(v.ID)
			return func() error { return os.Remove(file) }, os.WriteFile(file, nil, 0o600)
		}},
	}
}

// cut cuts a direction, and returns the function that mends the direction.
func (s *side) cut(from, to int) (heal func() error) {
	s.c.Network.Links.Cut(from, to, true)
	return func() error { s.c.Network.Links.Cut(from, to, false); return nil }
}

// slow slows all links of the victim down.
func slow(s *side, v, _ *cluster.Node) (heal func() error, err error) {
	all := func(by time.Duration) {
		for _, n := range s.c.Nodes {
			s.c.Network.Links.Slow(n.ID, v.ID, by)
			s.c.Network.Links.Slow(v.ID, n.ID, by)
		}
	}
	all(failTime)
	return func() error { all(0); return nil }, nil
}

// falter pauses and resumes the victim, again and again until the failure is healed.
func falter(_ *side, v, _ *cluster.Node) (heal func() error, err error) {
	if err := v.Pause(); err != nil {
		return nil, err
	}
	var (
		end    = make(chan struct{})
		group  sync.WaitGroup
		failed error
	)
	wait := func(d time.Duration) bool {
		select {
		case <-end:
			return false
		case <-time.After(d):
			return true
		}
	}
	group.Go(func() {
		for failed == nil && wait(faltersFor) {
			if failed = v.Resume(); failed == nil && wait(runsFor) {
				failed = v.Pause()
			}
		}
	})
	return func() error {
		close(end)
		group.Wait()
		return errors.Join(failed, v.Resume())
	}, nil
}

// stuckDisk is a file: while the file exists, the node's disk behaves as stuck.
func (s *side) stuckDisk(id int) string { return filepath.Join(s.dir, fmt.Sprintf("stuck-%d", id)) }
