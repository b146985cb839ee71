// Copyright 2026 The Weft Authors
// SPDX-License-Identifier: Apache-2.0

package hosts

import (
	"slices"
	"time"

	pb "go.etcd.io/raft/v3/raftpb"

	"github.com/weftraft/weft/leases"
	"github.com/weftraft/weft/raft"
)

// checker holds what must be true of all members at once.
type checker struct {
	w *sim
	// leaders is the leader of each term.
	leaders map[uint64]uint64
	// applied is what stands at each index: its term, and a checksum.
	applied map[uint64]appliedEntry
	// fresh is the index of the last entry applied anywhere that concerns any key, freshOf the
	// same for a key: somebody may have seen the entry.
	fresh   uint64
	freshOf [keys]uint64
	// changes are the changes of the members that were proposed, as bytes.
	changes []string
}

type appliedEntry struct {
	term uint64
	sum  uint64
}

// sees looks at a member after a step.
func (c *checker) sees(r *replica) {
	s := r.core.State()
	if s.Role != raft.StateLeader {
		return
	}
	if c.leaders == nil {
		c.leaders = map[uint64]uint64{}
	}
	if other, ok := c.leaders[s.Term]; !ok {
		c.leaders[s.Term] = r.m.id
		c.w.reach.Leaders++
		c.w.say(r.m.id, "leads term %d", s.Term)
	} else if other != r.m.id {
		c.w.fail("n%d and n%d lead term %d", other, r.m.id, s.Term)
	}
}

// applies notes an entry applied by a member.
func (c *checker) applies(r *replica, e *pb.Entry) {
	if c.applied == nil {
		c.applied = map[uint64]appliedEntry{}
	}
	is := appliedEntry{e.GetTerm(), sumOf(e)}
	was, ok := c.applied[e.GetIndex()]
	if !ok {
		c.applied[e.GetIndex()] = is
	} else if was != is {
		c.w.fail("n%d applies entry %d of term %d with checksum %x; another member applied term %d, checksum %x",
			r.m.id, e.GetIndex(), is.term, is.sum, was.term, was.sum)
	}
}

// shows notes that a member has applied an entry, so that a client may have seen the effect.
// An entry concerns the keys that the host names to the leases, or every key if the host
// names none.
func (c *checker) shows(e *pb.Entry) {
	var spans []leases.Span
	if c.w.opts.Kind == cockroachLike && e.GetType() == pb.EntryNormal {
		spans = writtenKeys(e.GetData())
	}
	for key := range c.freshOf {
		if spans == nil || slices.Contains(spans, keySpan(byte(key))) {
			c.freshOf[key] = max(c.freshOf[key], e.GetIndex())
			c.fresh = max(c.fresh, e.GetIndex())
		}
	}
}

// changed checks that an applied change was proposed.
func (c *checker) changed(r *replica, e *pb.Entry) {
	if len(e.GetData()) > 0 && !slices.Contains(c.changes, string(e.GetData())) {
		c.w.fail("n%d applies the change %x at %d, which nobody proposed", r.m.id, e.GetData(), e.GetIndex())
	}
}

// keepsUp checks that a member applies the entries known as committed, after
// the faults.
func (c *checker) keepsUp(r *replica) {
	m, w := r.m, c.w
	if !w.calm || r.state.at.index >= m.target {
		m.target, m.targetAt = r.core.State().Commit, w.Now()
		return
	}
	if late := w.Now() - m.targetAt; late > lagTime {
		w.fail("n%d has known for %v that %d is committed, and has applied %d", m.id, late, m.target, r.state.at.index)
	}
}

// lagTime bounds the time until members apply the entries known as committed.
const lagTime = 3 * time.Second
