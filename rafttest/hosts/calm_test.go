// Copyright 2026 The Weft Authors
// SPDX-License-Identifier: Apache-2.0

package hosts

import (
	"testing"
	"time"

	"github.com/stretchr/testify/require"

	"github.com/weftraft/weft/internal/world"
	"github.com/weftraft/weft/rafttest/internal/register"
)

// calmSim founds a group without faults, and lets it elect a leader.
func calmSim(t *testing.T, seed uint64, opts options, changes ...func(*plan)) (w *sim, lead *replica) {
	t.Helper()
	w = newSim(seed, opts)
	t.Cleanup(world.SetEntropy(world.NewDraws(seed, 5)))
	w.plan = calmPlan()
	for _, change := range changes {
		change(&w.plan)
	}
	w.found()
	require.True(t, w.runUntil(calmTime, func() bool { return w.leader() != nil && w.agree() }), "no leader: %v", w.err)
	return w, w.leader().common()
}

func calmPlan() plan {
	return plan{
		founders: 3, links: world.Traits{Least: time.Millisecond, Most: 2 * time.Millisecond}, syncMin: 100 * time.Microsecond, syncMax: 200 * time.Microsecond,
		passMax: 100 * time.Microsecond, snapshotEvery: 1000, keep: 100, quota: 1 << 30,
		maxSizePerMsg: 1 << 20, maxApplying: 1 << 20, maxInflightMsgs: 256, think: time.Millisecond,
	}
}

// TestAnswerToAnEarlierProcess is a schedule for fact 14: an answer to a read
// request is held up, the process that asked ends, the next one asks again, and
// then the old answer arrives.
func TestAnswerToAnEarlierProcess(t *testing.T) {
	stale := func(seed uint64, lib library, bug bug) error {
		w, lead := calmSim(t, seed, options{Kind: etcdLike, Library: lib, Bug: bug})
		reader := w.machines[lead.m.id%3]
		slow := w.links.Link(lead.m.id, reader.id)
		call := func(m *machine, kind register.Kind) (answered *bool) {
			answered = new(bool)
			for range keys { // of keys that are drawn
				w.call(0, m, kind, func() { *answered = true })
			}
			return answered
		}
		pass := func(d time.Duration) { w.runUntil(w.Now()+d, nil) }

		slow.Shape(world.Traits{Least: 151 * time.Millisecond, Most: 152 * time.Millisecond}, w.net)
		pass(300 * time.Millisecond)
		call(reader, register.Read)
		pass(20 * time.Millisecond)
		reader.stop()
		reader.start()
		for range 10 {
			call(lead.m, register.Write)
		}
		pass(50 * time.Millisecond)
		read := call(reader, register.Read)
		pass(time.Second)
		slow.Shape(w.plan.links, w.net)
		require.True(t, w.runUntil(w.Now()+calmTime, func() bool { return *read }), "no answer to the second read")
		w.checkHistory()
		return w.err
	}
	for _, lib := range libraries(etcdLike) {
		found := false
		for seed := uint64(1); seed <= 4; seed++ {
			require.NoError(t, stale(seed, lib, noBug), lib.Name)
			if err := stale(seed, lib, reusedReadIDs); err != nil {
				require.ErrorContains(t, err, "not linearizable", lib.Name)
				found = true
			}
		}
		require.True(t, found, lib.Name)
	}
}
