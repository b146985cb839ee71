// Copyright 2026 The Weft Authors
// SPDX-License-Identifier: Apache-2.0

package rawnodetest_test

import (
	"errors"
	"flag"
	"fmt"
	"runtime"
	"strings"
	"testing"
	"time"

	"github.com/stretchr/testify/require"

	pb "go.etcd.io/raft/v3/raftpb"

	"github.com/weftraft/weft/rawnode"
	"github.com/weftraft/weft/rawnode/rawnodetest"
	"github.com/weftraft/weft/storage"
)

// ledgersOf opens ledgers with a bug.
func ledgersOf(bug string) func(rawnodetest.Member) (rawnode.StateMachine, error) {
	return func(m rawnodetest.Member) (rawnode.StateMachine, error) { return openLedger(bug)(m.Dir) }
}

// keepLittle configures a node to keep only a few entries of its log.
func keepLittle(_ uint64, c *rawnode.ReplicaConfig) { c.RetainEntries, c.RetainBytes = 5, 1000 }

func TestClusterReplicates(t *testing.T) {
	c := rawnodetest.NewCluster(t, rawnodetest.ClusterOptions{StateMachine: ledgersOf(""), Seed: 1})
	for node := range uint64(3) {
		require.EqualValues(t, node+1, c.MustPropose(node+1, []byte("a")))
	}
	c.MustRead(2)
	text, err := readLedger(c.StateMachine(2))
	require.NoError(t, err)
	require.Equal(t, `{"a":3}`, text)
	c.Agree(time.Minute, readLedger)
	require.Less(t, c.Now(), 5*time.Second)

	old := c.WaitLeader()
	to := old%3 + 1
	_, err = c.TransferLeader(old, to).Wait()
	require.NoError(t, err)
	require.Equal(t, to, c.Leader())
	require.Equal(t, c.Status(old).Lead, to)
}

// A leader on the smaller side of a partition acknowledges nothing, and answers no read;
// the other side goes on.
func TestClusterPartition(t *testing.T) {
	c := rawnodetest.NewCluster(t, rawnodetest.ClusterOptions{StateMachine: ledgersOf(""), Nodes: 5})
	old := c.WaitLeader()
	c.MustPropose(old, []byte("a"))
	var others []uint64
	for id := range uint64(5) {
		if id+1 != old {
			others = append(others, id+1)
		}
	}
	c.Partition([]uint64{old}, others)
	lost, read := c.Propose(old, []byte("lost")), c.Read(old)
	c.Until(time.Minute, "another leader", func() bool { return c.Leader() != old && c.Leader() > 0 })
	c.MustPropose(others[0], []byte("b"))
	_, err := lost.Wait()
	require.Error(t, err)
	_, err = read.Wait()
	require.ErrorIs(t, err, rawnode.ErrRefused)
	require.LessOrEqual(t, lost.Took(), 11*time.Second)
	c.Heal()
	c.MustPropose(old, []byte("c"))
	c.Agree(time.Minute, readLedger)
}

// A leader whose disk hangs hands over, and writes go on; when the disk goes on, so does the node.
func TestClusterDiskHangs(t *testing.T) {
	c := rawnodetest.NewCluster(t, rawnodetest.ClusterOptions{StateMachine: ledgersOf("")})
	old := c.WaitLeader()
	c.MustPropose(old, []byte("a"))
	c.HangDisk(old, time.Hour)
	c.Propose(old, []byte("b")) // an idle group does not notice
	c.Until(time.Minute, "another leader", func() bool { return c.Leader() != old && c.Leader() > 0 })
	c.MustPropose(c.Leader(), []byte("b"))
	_, err := c.Propose(old, []byte("c")).Wait()
	require.ErrorIs(t, err, storage.ErrLate)
	c.Run(time.Hour)
	c.SlowDisk(old, 10, time.Minute)
	c.MustPropose(old, []byte("d"))
	c.Agree(time.Minute, readLedger)
}

// A node that was away for longer than the log reaches back gets a snapshot, and so does a new
// node.
func TestClusterSnapshots(t *testing.T) {
	c := rawnodetest.NewCluster(t, rawnodetest.ClusterOptions{StateMachine: ledgersOf(""), Adjust: keepLittle, ChunkBytes: 50})
	away := c.WaitLeader()
	c.Crash(away, false)
	require.Nil(t, c.StateMachine(away))
	require.False(t, c.Up(away))
	_, err := c.Propose(away, nil).Wait()
	require.ErrorIs(t, err, rawnode.ErrStopped)
	at := away%3 + 1
	for i := range 100 {
		c.MustPropose(at, fmt.Appendf(nil, "%d", i))
	}
	c.Start(away)
	c.Agree(time.Minute, readLedger)
	require.EqualValues(t, 1, c.Status(away).Counters.SnapshotsInstalled)

	id := c.Add()
	_, err = c.ProposeConfChange(at, &pb.ConfChange{Type: pb.ConfChangeAddLearnerNode.Enum(), NodeId: &id}).Wait()
	require.NoError(t, err)
	c.Agree(time.Minute, readLedger)
	require.EqualValues(t, 1, c.Status(id).Counters.SnapshotsInstalled)
	require.Equal(t, []uint64{id}, c.Status(at).Members.Learners)
}

// storm runs a cluster under faults, and checks that all acknowledged commands are there at the
// end.
func storm(t rawnodetest.T, seed uint64, bug string) (story uint64, done int) {
	c := rawnodetest.NewCluster(t, rawnodetest.ClusterOptions{
		StateMachine: ledgersOf(bug), Seed: seed, Nodes: 3 + int(seed%3), Adjust: keepLittle, ChunkBytes: 60,
		Link: rawnodetest.Link{Delay: time.Millisecond, Jitter: 5 * time.Millisecond},
	})
	c.Chaos(20*time.Second, rawnodetest.Faults{})
	for i := 0; c.Now() < 20*time.Second; i++ {
		_, err := c.Propose(uint64(i%3)+1, fmt.Appendf(nil, "account %d", i%7)).Wait()
		if err == nil {
			done++
		}
		c.Run(10 * time.Millisecond)
	}
	c.MustPropose(1, []byte("last"))
	c.Agree(time.Minute, readLedger)
	return c.Story(), done
}

var clusterSeeds = flag.Uint64("clusterseeds", 15, "how many seeds TestClusterUnderFaults runs")

func TestClusterUnderFaults(t *testing.T) {
	seeds, all := *clusterSeeds, 0
	if testing.Short() {
		seeds = min(seeds, 8)
	}
	for seed := range seeds {
		story, done := storm(t, seed, "")
		all += done
		if seed < 5 {
			again, _ := storm(t, seed, "")
			require.Equal(t, story, again, "seed %d: the same story", seed)
			other, _ := storm(t, seed+1000, "")
			require.NotEqual(t, story, other)
		}
	}
	require.Greater(t, all, int(seeds)*20, "commands that were acknowledged")
}

// record is a T that keeps the output of a test.
type record struct {
	failed  bool
	text    strings.Builder
	cleanup []func()
}

func (r *record) Helper()                   {}
func (r *record) Failed() bool              { return r.failed }
func (r *record) Cleanup(f func())          { r.cleanup = append(r.cleanup, f) }
func (r *record) Logf(f string, a ...any)   { fmt.Fprintf(&r.text, f+"\n", a...) }
func (r *record) Fatalf(f string, a ...any) { r.failed = true; r.Logf(f, a...); runtime.Goexit() }

// recorded runs a test that may fail, and returns the test's output.
func recorded(test func(rawnodetest.T)) string {
	r := &record{}
	done := make(chan struct{})
	go func() {
		defer close(done)
		defer func() {
			for _, f := range r.cleanup {
				f()
			}
		}()
		test(r)
	}()
	<-done
	if !r.failed {
		return ""
	}
	return r.text.String()
}

// For each bug that shows in a cluster, some seed finds the bug, and the failure names the seed and
// tells the story.
func TestClusterFindsBugs(t *testing.T) {
	for _, bug := range []string{
		"index lost", "host's bytes lost", "first command twice", "a result missing", "depends on the replica", "durable too soon",
		"file not synced", "restore not durable", "snapshot of the file", "snapshot without host",
	} {
		t.Run(bug, func(t *testing.T) {
			t.Parallel()
			for seed := range uint64(60) {
				text := recorded(func(t rawnodetest.T) { storm(t, seed, bug) })
				if text == "" {
					continue
				}
				require.Contains(t, text, fmt.Sprintf("of seed %d: ", seed))
				require.Contains(t, text, fmt.Sprintf("rawnodetest: seed %d, ", seed))
				require.Regexp(t, `\d\.\d{3} n\d  `, text)
				t.Logf("seed %d: %s", seed, strings.SplitN(text, "\n", 2)[0])
				return
			}
			t.Fatal("no seed finds it")
		})
	}
}

func TestClusterMistakesAreNamed(t *testing.T) {
	text := recorded(func(t rawnodetest.T) {
		rawnodetest.NewCluster(t, rawnodetest.ClusterOptions{Nodes: 10, TickInterval: -1, ChunkBytes: -1, Link: rawnodetest.Link{Loss: 2}})
	})
	for _, want := range []string{"StateMachine is nil", "Nodes is 10, want 0 to 9", "TickInterval is -1ns", "ChunkBytes is -1", "Loss:2"} {
		require.Contains(t, text, want)
	}
	for words, open := range map[string]func(rawnodetest.Member) (rawnode.StateMachine, error){
		"node 1 does not start: open the state: no disk": func(rawnodetest.Member) (rawnode.StateMachine, error) { return nil, errors.New("no disk") },
		"neither a state machine nor an error":           func(rawnodetest.Member) (rawnode.StateMachine, error) { return nil, nil },
	} {
		require.Contains(t, recorded(func(t rawnodetest.T) { rawnodetest.NewCluster(t, rawnodetest.ClusterOptions{StateMachine: open}) }), words)
	}
	text = recorded(func(t rawnodetest.T) {
		c := rawnodetest.NewCluster(t, rawnodetest.ClusterOptions{StateMachine: ledgersOf("")})
		c.Until(time.Second, "a pig that flies", func() bool { return false })
	})
	require.Contains(t, text, "after 1s: still not a pig that flies")
	text = recorded(func(t rawnodetest.T) {
		rawnodetest.NewCluster(t, rawnodetest.ClusterOptions{StateMachine: ledgersOf("")}).Crash(4, true)
	})
	require.Contains(t, text, "node 4, want 1 to 3")
}
