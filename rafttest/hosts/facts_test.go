// Copyright 2026 The Weft Authors
// SPDX-License-Identifier: Apache-2.0

package hosts

import (
	"testing"
	"time"

	"github.com/stretchr/testify/require"
	"go.etcd.io/raft/v3/tracker"

	"github.com/weftraft/weft/ecraft"
	"github.com/weftraft/weft/raft"
)

// TestCodingNeedsTheHost leaves out, one at a time, the settings that a host which
// looks into entries must make for coding. Each omission is noticed.
func TestCodingNeedsTheHost(t *testing.T) {
	unedited := coded(cockroachLike)
	unedited.Types = upstreamTypes
	for _, tt := range []struct {
		name   string
		lib    library
		within uint64
		want   string
	}{
		{"arrays by message type as they were", unedited, 10, "index out of range"},
		{"no clear prefix", coded(cockroachLike, func(c *raft.Coding) { c.ClearPrefix = 0 }), 10, "entry is encoded as"},
		{"a clear prefix that is too short", coded(cockroachLike, func(c *raft.Coding) { c.ClearPrefix = 9 }), 10, "dies: entry"},
		{"no veto", coded(cockroachLike, func(c *raft.Coding) { c.Veto = nil }), 20, "stand outside the log"},
		{"memory without a bound", coded(cockroachLike, func(c *raft.Coding) { c.Memory = 1 << 30 }), 60, "bytes of units"},
	} {
		t.Run(tt.name, func(t *testing.T) {
			require.ErrorContains(t, hunt(t, tt.within, options{Kind: cockroachLike, Library: tt.lib}), tt.want)
		})
	}
}

// putMany puts payloads of a size through a member, and waits until all members
// have applied them.
func putMany(t *testing.T, w *sim, m *machine, n, size int) {
	t.Helper()
	answers := 0
	for i := range n {
		c := command{head: head{encoding: admitted, id: newCommandID(0, uint32(1000+i)), priority: 1},
			value: uint32(i + 1), size: size}
		m.run(func() { m.proc.put(c, func() { answers++ }); m.proc.work() })
		require.True(t, w.runUntil(w.Now()+calmTime, func() bool { return answers == i+1 }), "put %d: %v", i, w.err)
	}
	require.True(t, w.runUntil(w.Now()+calmTime, w.agree), "no agreement: %v %s", w.err, w.describe())
}

// halves has each of three members hold half of an entry, and send it on at once.
func halves(c *raft.Coding) { c.Policy, c.GossipGap, c.GossipDelay = ecraft.Fixed(2), 0, 0 }

// TestTokensAreWhatTravels is fact 11: a leader charges a member len(Data) of each
// entry that it sends, and gets the whole charge back.
func TestTokensAreWhatTravels(t *testing.T) {
	const n, size = 40, 16 << 10
	for _, lib := range []library{upstreamLibrary(), weft(), coded(cockroachLike, halves)} {
		w, lead := calmSim(t, 7, options{Kind: cockroachLike, Library: lib})
		putMany(t, w, lead.m, n, size)
		h := lead.m.proc.(*cockroach)
		require.True(t, h.allReturned(), lib.Name)
		require.Len(t, h.tokens, 2, lib.Name)
		for id, tokens := range h.tokens {
			share := float64(tokens.bytes) / (n * size)
			t.Logf("%-10s to n%d: %.3f bytes for each byte put", lib.Name, id, share)
			if lib.Coded {
				require.InDelta(t, 0.5, share, 0.1, "%s: what goes to n%d", lib.Name, id)
			} else {
				require.InDelta(t, 1, share, 0.01, "%s: what goes to n%d", lib.Name, id)
			}
		}
	}
}

// TestShownMatchCountsWholeEntriesOnly is fact 9: hosts cut logs, return quota and hand over
// leadership by Progress.Match, so it must not pass what a member can apply,
// even while the member acknowledges more.
func TestShownMatchCountsWholeEntriesOnly(t *testing.T) {
	ahead := func(t *testing.T, lib library) (committed, beyond bool) {
		w, lead := calmSim(t, 3, options{Kind: cockroachLike, Library: lib})
		putMany(t, w, lead.m, 3, 0) // so that all have said that they read coded entries
		var others []*machine
		for _, m := range w.machines {
			if m != lead.m {
				others = append(others, m)
			}
		}
		// Followers do not reach each other, and ask the leader in the end.
		w.links.Cut(others[0].id, others[1].id)
		w.links.Cut(others[1].id, others[0].id)
		c := command{head: head{encoding: admitted, id: newCommandID(0, 2000), priority: 1}, value: 1, size: 8 << 10}
		lead.m.run(func() { lead.m.proc.put(c, func() {}); lead.m.proc.work() })
		index := lead.core.State().Commit + 1
		done := w.runUntil(w.Now()+calmTime, func() bool {
			if lead.core.State().Commit >= index {
				lead.visit(func(id uint64, _ bool, pr tracker.Progress) {
					lacks := w.machines[id-1].proc.common().core.(codedCore).CodingStatus().Completed < index
					committed = committed || lacks
					beyond = beyond || lacks && pr.Match >= index
				})
			}
			return lead.core.State().Commit >= index && w.agree()
		})
		require.True(t, done, "%v %s", w.err, w.describe())
		return committed, beyond
	}
	committed, beyond := ahead(t, coded(cockroachLike, halves))
	require.True(t, committed, "the entry was whole everywhere before it was committed: nothing was tested")
	require.False(t, beyond, "Match passes what a member has whole")

	liar := coded(cockroachLike, halves)
	honest := liar.New
	liar.New = func(r *reach, cfg raft.Config) (core, error) {
		c, err := honest(r, cfg)
		return acknowledgedMatch{c.(weftCore)}, err
	}
	_, beyond = ahead(t, liar)
	require.True(t, beyond, "a library that reports what is acknowledged is not found")
}

// acknowledgedMatch is a core whose Match of each member is at least the commit index,
// as if acknowledged entries were complete entries.
type acknowledgedMatch struct{ weftCore }

func (c acknowledgedMatch) Visit(see func(uint64, bool, tracker.Progress)) {
	c.weftCore.Visit(func(id uint64, learner bool, pr tracker.Progress) {
		pr.Match = max(pr.Match, c.State().Commit)
		see(id, learner, pr)
	})
}

// TestPayloadsComeInTime is fact 12: a follower can apply an entry soon after it learns that the entry
// is committed, even if followers do not reach each other. Else the closed timestamps of CockroachDB
// would fall behind.
func TestPayloadsComeInTime(t *testing.T) {
	for _, apart := range []bool{false, true} {
		for _, lib := range []library{upstreamLibrary(), weft(), coded(etcdLike, halves)} {
			w, lead := calmSim(t, 5, options{Kind: etcdLike, Library: lib})
			if apart {
				for _, from := range w.machines {
					for _, to := range w.machines {
						if from != lead.m && to != lead.m {
							w.links.Cut(from.id, to.id)
						}
					}
				}
			}
			var worst time.Duration
			behind := map[uint64]time.Duration{} // since when
			stop := false
			var look func()
			look = func() {
				for _, m := range w.machines {
					r := m.proc.common()
					since, is := behind[m.id]
					switch lacks := r.core.State().Commit > r.state.at.index; {
					case !lacks:
						delete(behind, m.id)
					case !is:
						behind[m.id] = w.Now()
					default:
						worst = max(worst, w.Now()-since)
					}
				}
				if !stop {
					w.After(time.Millisecond, look)
				}
			}
			look()
			putMany(t, w, lead.m, 30, 32<<10)
			stop = true
			t.Logf("%-10s followers apart %-5v: at most %v behind what is known to be committed", lib.Name, apart, worst)
			require.Less(t, worst, time.Second, lib.Name)
		}
	}
}

// TestQueuesAreBounded is fact 15: a leader whose followers do not answer keeps and
// sends no more bytes than its limits allow.
func TestQueuesAreBounded(t *testing.T) {
	const size, puts = 10 << 10, 200
	flood := func(lib library, most uint64) (kept, sent int) {
		w, lead := calmSim(t, 9, options{Kind: etcdLike, Library: lib}, func(p *plan) {
			p.maxUncommitted, p.maxInflightBytes, p.maxSizePerMsg = most, most, size
		})
		before := lead.m.disk.live.last()
		for _, m := range w.machines {
			if m != lead.m {
				m.pause(time.Hour)
				w.links.Link(lead.m.id, m.id).Sent = 0
			}
		}
		for i := range puts {
			c := command{head: head{id: newCommandID(1, uint32(1000+i))}, value: uint32(i), size: size}
			lead.m.run(func() { lead.m.proc.put(c, func() {}); lead.m.proc.work() })
			w.runUntil(w.Now()+time.Millisecond, nil)
		}
		require.NoError(t, w.err)
		for _, e := range lead.m.disk.live.entries {
			if e.GetIndex() > before {
				kept += len(e.GetData())
			}
		}
		for _, m := range w.machines {
			sent = max(sent, w.links.Link(lead.m.id, m.id).Sent)
		}
		return kept, sent
	}
	for _, lib := range []library{upstreamLibrary(), weft(), coded(etcdLike, halves)} {
		const most = 256 << 10
		kept, sent := flood(lib, most)
		t.Logf("%-10s keeps %d KiB and sends %d KiB to each; the limit is %d KiB", lib.Name, kept>>10, sent>>10, most>>10)
		require.LessOrEqual(t, kept, most+2*size, "%s: uncommitted entries", lib.Name)
		require.LessOrEqual(t, sent, most+4*size, "%s: entries in flight", lib.Name)
		kept, sent = flood(lib, 1<<40)
		require.Greater(t, kept, puts*size/2, "%s: without a limit", lib.Name)
		require.Greater(t, sent, most+4*size, "%s: without a limit", lib.Name)
	}
}
