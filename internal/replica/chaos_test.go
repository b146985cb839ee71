// Copyright 2026 The Weft Authors
// SPDX-License-Identifier: Apache-2.0

package replica

import (
	crand "crypto/rand"
	"errors"
	"flag"
	"fmt"
	"math/rand/v2"
	"slices"
	"testing"

	"github.com/stretchr/testify/require"

	pb "go.etcd.io/raft/v3/raftpb"

	"github.com/weftraft/weft/ecraft"
	"github.com/weftraft/weft/internal/wire"
	"github.com/weftraft/weft/raft"
)

var (
	chaosSeeds = flag.Int("chaosseeds", 150, "schedules that TestVerdicts draws for each core")
	chaosSeed  = flag.Uint64("chaosseed", 0, "the only schedule to run")
)

// Verdicts are true on any schedule: what was acknowledged is in the state, once;
// what was refused is not and never will be; what is unknown is there at most
// once; and a read sees what was acknowledged before it. Messages are lost,
// doubled and reordered, nodes are cut off, stop and start again, leaders and
// members change, logs are compacted.
func TestVerdicts(t *testing.T) {
	bothCores(t, func(t *testing.T, core NewCore) { verdicts(t, core, nil) })
	t.Run("coded", func(t *testing.T) {
		verdicts(t, Weft, func(rng *rand.Rand) *raft.Coding {
			c := &raft.Coding{Threshold: 1}
			if level := rng.IntN(4); level > 0 {
				c.Policy = ecraft.Fixed(level)
			}
			return c
		})
	})
}

// verdicts runs the schedules with a core, and with coding unless nil.
func verdicts(t *testing.T, core NewCore, coding func(*rand.Rand) *raft.Coding) {
	total := map[string]int{}
	for seed := range uint64(*chaosSeeds) {
		if *chaosSeed != 0 {
			seed = *chaosSeed
		}
		t.Run(fmt.Sprint("seed=", seed), func(t *testing.T) {
			if core == nil {
				return
			}
			ch := newChaos(t, core, coding, seed)
			ch.run()
			for k, v := range ch.seen {
				total[k] += v
			}
		})
		if *chaosSeed != 0 {
			return
		}
	}
	t.Log(total)
	for _, k := range []string{"applied", "refused", "unknown", "read", "crash", "cut", "snapshot", "resent", "forwarded", "duplicate", "change", "transfer", "stall"} {
		require.NotZero(t, total[k], "no schedule reached: %s", k)
	}
	if coding != nil {
		for _, k := range []string{"coded", "completed", "pushed", "asked"} {
			require.NotZero(t, total[k], "no schedule reached: %s", k)
		}
	}
}

type chaos struct {
	*cluster
	t        *testing.T
	commands map[Call]string
	reads    map[Call]uint64 // the index that must be seen
	acked    uint64          // the highest index acknowledged
	cut      uint64          // a node that is cut off, or 0
	loss     int             // percent
	seen     map[string]int
}

func newChaos(t *testing.T, core NewCore, coding func(*rand.Rand) *raft.Coding, seed uint64) *chaos {
	pinUpstream(t, seed)
	ch := &chaos{t: t, commands: map[Call]string{}, reads: map[Call]uint64{}, seen: map[string]int{}}
	ch.cluster = newCluster(t, core, 1, 2, 3)
	ch.rand = rand.New(rand.NewPCG(seed, 7))
	for _, id := range ch.ids() {
		n := ch.nodes[id]
		n.cfg.Rand = ch.rand
		n.cfg.RetainEntries = 16
	}
	if coding != nil {
		ch.coding = func() *raft.Coding { return coding(ch.rand) }
	}
	for _, id := range ch.ids() {
		ch.start(ch.nodes[id])
	}
	ch.shuffle = true
	ch.lose = func(m wire.Message) bool {
		return ch.cut != 0 && (m.From == ch.cut || m.To == ch.cut) || ch.rand.IntN(100) < ch.loss
	}
	ch.loss = ch.rand.IntN(20)
	return ch
}

func (ch *chaos) run() {
	for range 120 {
		for range ch.rand.IntN(5) {
			ch.act()
		}
		ch.pass()
		ch.note()
	}
	ch.loss, ch.cut, ch.shuffle = 0, 0, false
	for _, n := range ch.nodes {
		n.held, n.full = false, false
		_ = n.r.Stalled(nil)
	}
	ch.cluster.run(150) // longer than any deadline
	ch.note()
	ch.check()
}

// pass lets a tick pass, and some of what waits happen.
func (ch *chaos) pass() {
	ch.now += tick
	for _, id := range ch.ids() {
		n := ch.nodes[id]
		n.held = n.full || ch.rand.IntN(4) == 0
		if ch.rand.IntN(10) > 0 {
			n.r.Tick(ch.now)
		}
	}
	for range 1 + ch.rand.IntN(8) {
		ch.deliver()
		for _, id := range ch.ids() {
			ch.turn(ch.nodes[id])
		}
	}
}

// act has something happen.
func (ch *chaos) act() {
	ids := ch.ids()
	id := ids[ch.rand.IntN(len(ids))]
	n := ch.nodes[id]
	switch ch.rand.IntN(26) {
	case 0:
		ch.seen["crash"]++
		ch.retire(n)
		ch.start(n)
	case 1:
		ch.cut = id
		ch.seen["cut"]++
	case 2:
		ch.cut = 0
	case 3:
		ch.calls++
		n.r.TransferLeader(ch.calls, ids[ch.rand.IntN(len(ids))], ch.now+20*tick)
		ch.seen["transfer"]++
	case 4:
		ch.change(n)
	case 9:
		n.full = true
		_ = n.r.Stalled(errDiskFull)
		ch.seen["stall"]++
	case 10:
		n.full = false
		_ = n.r.Stalled(nil)
	case 5, 6, 7, 8:
		ch.calls++
		ch.reads[ch.calls] = ch.acked
		n.r.ReadWith(ch.calls, ReadOptions{}, ch.now+30*tick)
	default:
		ch.calls++
		command := fmt.Sprintf("%d", ch.calls)
		ch.commands[ch.calls] = command
		n.r.Propose(ch.calls, []byte(command), ch.now+30*tick)
	}
}

// change adds or removes the fourth node.
func (ch *chaos) change(n *node) {
	typ := pb.ConfChangeRemoveNode
	if ch.nodes[4] == nil {
		ch.add(4, nil).cfg.RetainEntries = 16
		ch.start(ch.nodes[4])
		typ = pb.ConfChangeAddNode
	} else if ch.rand.IntN(2) == 0 {
		typ = pb.ConfChangeAddLearnerNode
	}
	ch.calls++
	ch.seen["change"]++
	n.r.ProposeConfChange(ch.calls, &pb.ConfChangeV2{Changes: []*pb.ConfChangeSingle{{Type: typ.Enum(), NodeId: new(uint64(4))}}}, ch.now+30*tick)
}

// retire counts what a replica did before it is lost, with all its calls.
func (ch *chaos) retire(n *node) {
	c := n.r.count
	ch.seen["snapshot"] += int(c.SnapshotsInstalled)
	ch.seen["resent"] += int(c.Resent)
	ch.seen["forwarded"] += int(c.ForwardedIn)
	ch.seen["duplicate"] += int(c.DuplicateBatches)
	ch.seen["coded"] += int(n.r.coding.counts.Encoded)
	ch.seen["completed"] += int(n.r.coding.counts.Completed)
	ch.seen["pushed"] += int(n.r.coding.counts.Pushed)
	ch.seen["asked"] += int(n.r.coding.counts.Asked)
}

// note looks at what has ended.
func (ch *chaos) note() {
	for call, d := range ch.done {
		want, isRead := ch.reads[call]
		switch {
		case d.Err != nil && isRead:
			require.ErrorIs(ch.t, d.Err, ErrRefused)
		case isRead:
			ch.seen["read"]++
			require.GreaterOrEqual(ch.t, d.Index, want, "a read misses what was acknowledged before it")
			delete(ch.reads, call)
		case d.Err == nil && ch.commands[call] != "":
			ch.acked = max(ch.acked, d.Index)
			require.Equal(ch.t, "did "+ch.commands[call], d.Result)
		}
	}
}

// check compares all verdicts with the state that the cluster agrees on.
func (ch *chaos) check() {
	var longest *node
	for _, id := range ch.ids() {
		n := ch.nodes[id]
		ch.retire(n)
		if id != 4 && longest != nil {
			require.Equal(ch.t, longest.sm.applied, n.sm.applied, "node %d", id)
			require.Equal(ch.t, longest.sm.host, n.sm.host, "node %d", id)
		}
		if longest == nil {
			longest = n
		}
		require.Empty(ch.t, n.r.outbox.queue)
		require.Zero(ch.t, n.r.Status().Waiting, "node %d", id)
		if id != 4 {
			require.Empty(ch.t, n.r.outbox.batches, "node %d: the fate of each batch is known", id)
			require.Zero(ch.t, n.r.Status().Queued)
		}
	}
	count := map[string]int{}
	for _, s := range longest.sm.applied {
		count[s]++
	}
	for call, command := range ch.commands {
		n := count[command]
		require.LessOrEqual(ch.t, n, 1, "command %s is applied %d times", command, n)
		d, ended := ch.done[call]
		switch {
		case !ended: // its node stopped
		case d.Err == nil:
			ch.seen["applied"]++
			require.Equal(ch.t, 1, n, "command %s was acknowledged at index %d", command, d.Index)
		case errors.Is(d.Err, ErrRefused):
			ch.seen["refused"]++
			require.Zero(ch.t, n, "command %s was refused: %v", command, d.Err)
		default:
			ch.seen["unknown"]++
			require.ErrorIs(ch.t, d.Err, ErrUnknown)
		}
	}
	require.True(ch.t, slices.ContainsFunc(ch.ids(), func(id uint64) bool { return ch.nodes[id].r.leads() }), "the cluster is live")
}

// pinUpstream makes runs of upstream's core repeatable: it draws its election
// timeouts from crypto/rand.Reader.
func pinUpstream(t *testing.T, seed uint64) {
	old := crand.Reader
	t.Cleanup(func() { crand.Reader = old })
	crand.Reader = rand.NewChaCha8([32]byte{byte(seed), byte(seed >> 8)})
}
