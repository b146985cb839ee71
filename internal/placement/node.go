// Copyright 2026 The Weft Authors
// SPDX-License-Identifier: Apache-2.0

package placement

import (
	"cmp"
	"errors"
	"fmt"
	"slices"
	"sync"
	"sync/atomic"
	"time"
)

// Node is how well one node serves, as the node measures itself, and what it has heard of the other
// nodes. All groups of the node share it. Methods may be called from several goroutines.
//
// Health belongs to nodes and not to groups: ten thousand groups of a node send one report to each other
// node in an election timeout, or one at each tick under load, whichever group comes first.
type Node struct {
	cfg NodeConfig

	sync, turn, wait delays
	stalledAt        atomic.Int64 // when a group said last that it cannot write, plus 1; 0: never
	// calm and alarmed are as of ownAt. They are written under mu.
	calm, alarmed atomic.Bool

	mu     sync.Mutex
	weight int
	// own and ownLinks, sorted by round trip, are as of ownAt.
	own      Figure
	ownLinks []Link
	ownAt    time.Duration
	others   map[uint64]*other
	// due is when the next report to some node is due. It is written under mu.
	due atomic.Int64
	// even says that all weights that are known are equal.
	even   bool
	stills stills
	// alarm is when it began to be sure that this node is slow; 0: it is not.
	alarm time.Duration
}

// other is another node.
type other struct {
	figure  Figure
	weight  int
	heardAt time.Duration
	heard   bool
	asked   time.Duration // when a group last wanted to send it a report
	sentAt  time.Duration
	sent    bool
	stamp   time.Duration // of its last report, 0: it had none
	trips   trips
	links   []Link // as it told, by round trip
}

// NodeConfig configures a [Node].
type NodeConfig struct {
	// ID is the node's. Timeout is the election timeout of its groups.
	ID      uint64
	Timeout time.Duration
	// Clock tells the node's time, which never goes back.
	Clock func() time.Duration
	// Queue, unless nil, returns how long the oldest message has waited to be sent to a node. It must not wait.
	Queue func(to uint64) time.Duration
	// Weight is the setting of the node's weight: see [Weigh].
	Weight int
}

// NewNode returns a node, or an error that names every mistake.
func NewNode(cfg NodeConfig) (*Node, error) {
	var errs []error
	if cfg.ID == 0 {
		errs = append(errs, fmt.Errorf("%w: ID is 0, want the node's", ErrInvalid))
	}
	if cfg.Timeout <= 0 {
		errs = append(errs, fmt.Errorf("%w: Timeout is %v, want the election timeout", ErrInvalid, cfg.Timeout))
	}
	if cfg.Clock == nil {
		errs = append(errs, fmt.Errorf("%w: Clock is nil, want a clock", ErrInvalid))
	}
	errs = append(errs, CheckWeight("Weight", cfg.Weight))
	if err := errors.Join(errs...); err != nil {
		return nil, err
	}
	return &Node{cfg: cfg, weight: Weigh(cfg.Weight), others: map[uint64]*other{}, even: true, ownAt: -cfg.Timeout}, nil
}

// CheckWeight returns an error if a setting of a weight is out of its bounds.
func CheckWeight(field string, setting int) error {
	if setting > MaxWeight {
		return fmt.Errorf("%w: %s is %d, want at most %d", ErrInvalid, field, setting, MaxWeight)
	}
	return nil
}

// WeightCounts reports whether the weight of a node in one group counts, which was heard some ticks ago.
func WeightCounts(ticks, timeout uint64) bool { return ticks <= weightsLast*timeout }

// Timeout returns the election timeout.
func (n *Node) Timeout() time.Duration { return n.cfg.Timeout }

// Synced says how long a write took to become durable, or, of a write that is not durable, its age.
func (n *Node) Synced(took time.Duration) { n.sync.add(took) }

// Turned says how long a turn of a group took, and how long its oldest input had waited.
func (n *Node) Turned(waited, took time.Duration) {
	n.waited(waited)
	n.turn.add(took)
}

// Ticked says how late a group took a tick.
func (n *Node) Ticked(late time.Duration) { n.waited(late) }

func (n *Node) waited(d time.Duration) {
	n.wait.add(d)
	if d < worth {
		return
	}
	now := n.cfg.Clock()
	n.mu.Lock()
	defer n.mu.Unlock()
	n.stills.add(now, d)
}

// Limps reports whether the process of this node stands still again and again.
func (n *Node) Limps() bool {
	now := n.cfg.Clock()
	n.mu.Lock()
	defer n.mu.Unlock()
	return n.stills.often(now, n.cfg.Timeout)
}

// Stalled says that a group of the node cannot write now.
func (n *Node) Stalled() { n.stalledAt.Store(int64(n.cfg.Clock()) + 1) }

// SetWeight changes the node's weight: see [Weigh].
func (n *Node) SetWeight(setting int) error {
	if err := CheckWeight("the weight", setting); err != nil {
		return err
	}
	n.mu.Lock()
	defer n.mu.Unlock()
	n.weight = Weigh(setting)
	n.due.Store(0) // the others hear of it soon
	for _, o := range n.others {
		o.sent = false
	}
	n.weighed()
	return nil
}

// Weight returns the node's weight.
func (n *Node) Weight() int {
	n.mu.Lock()
	defer n.mu.Unlock()
	return n.weight
}

// Own returns the node's figure, which is at most a sixteenth of an election timeout old.
func (n *Node) Own() Figure {
	now := n.cfg.Clock()
	n.mu.Lock()
	defer n.mu.Unlock()
	return n.ownLocked(now)
}

func (n *Node) ownLocked(now time.Duration) Figure {
	if now-n.ownAt < n.cfg.Timeout/16 {
		return n.own
	}
	n.ownAt = now
	for _, d := range [...]*delays{&n.sync, &n.turn, &n.wait} {
		d.roll(now, n.cfg.Timeout)
	}
	n.ownLinks = n.links(now)
	at := n.stalledAt.Load()
	n.own = Figure{
		Sync: n.sync.figure(n.cfg.Timeout), Turn: n.turn.figure(n.cfg.Timeout), Wait: n.wait.figure(n.cfg.Timeout), Send: n.queued(now),
		Reach:   n.nearer(now),
		Stalled: at > 0 && now-time.Duration(at) < n.cfg.Timeout/2,
	}
	n.consider(now)
	return n.own
}

// consider decides whether groups have a reason to compare this node with others. The caller holds n.mu.
func (n *Node) consider(now time.Duration) {
	far, surely := n.far(now)
	n.calm.Store(n.even && n.own.Delay() < worth && !far)
	switch slow := surely || n.stills.often(now, n.cfg.Timeout); {
	case !slow:
		n.alarm = 0
	case n.alarm == 0:
		n.alarm = max(now, 1)
	}
	n.alarmed.Store(n.alarm > 0 && now-n.alarm <= n.cfg.Timeout)
}

// Calm reports whether no group has a reason to compare this node with others: all weights that are known are equal, and
// this node is neither slow nor far.
func (n *Node) Calm() bool { return n.calm.Load() }

// Alarmed reports whether it is sure, since at most an election timeout ago, that this node is slow: leaders then
// compare themselves with the others at each tick.
func (n *Node) Alarmed() bool { return n.alarmed.Load() }

// queued returns how long messages wait for the nearer half of the others.
func (n *Node) queued(now time.Duration) time.Duration {
	if n.cfg.Queue == nil {
		return 0
	}
	var waits []time.Duration
	for id, o := range n.others {
		if n.fresh(o, now) {
			waits = append(waits, n.cfg.Queue(id))
		}
	}
	if len(waits) == 0 {
		return 0
	}
	slices.Sort(waits)
	return waits[(len(waits)-1)/2]
}

// nearer returns the round trip to the nearer half of the others, or 0.
func (n *Node) nearer(now time.Duration) time.Duration {
	voters := []uint64{n.cfg.ID}
	for id, o := range n.others {
		if n.fresh(o, now) {
			voters = append(voters, id)
		}
	}
	return reachOf(n.cfg.ID, n.ownLinks, voters)
}

// fresh reports whether the report of a node counts.
func (n *Node) fresh(o *other, now time.Duration) bool {
	return o.heard && now-o.heardAt <= reportsLast*n.cfg.Timeout
}

// weighed compares the weights. The caller holds n.mu.
func (n *Node) weighed() {
	n.even = true
	for _, o := range n.others {
		n.even = n.even && (!o.heard || o.weight == n.weight)
	}
	n.consider(n.ownAt)
}

// Heard takes the report of another node.
func (n *Node) Heard(from uint64, r Report) {
	now := n.cfg.Clock()
	n.mu.Lock()
	defer n.mu.Unlock()
	o := n.other(from, now)
	changed := !o.heard || o.weight != r.Weight
	o.figure, o.weight, o.heardAt, o.heard = r.Figure, min(max(r.Weight, 0), MaxWeight), now, true
	o.stamp, o.links = r.Stamp, byRound(slices.Clone(r.Links))
	o.trips.answered(now, n.cfg.Timeout, r)
	if changed {
		n.weighed()
	}
}

// Report returns a report to another node.
func (n *Node) Report(to uint64) Report {
	now := n.cfg.Clock()
	n.mu.Lock()
	defer n.mu.Unlock()
	return n.report(n.other(to, now), now)
}

func (n *Node) report(o *other, now time.Duration) Report {
	own := n.ownLocked(now)
	r := Report{Figure: own, Weight: n.weight, Stamp: max(now, time.Microsecond), Links: n.ownLinks}
	if o.stamp > 0 && n.fresh(o, now) {
		r.Answers, r.Held = o.stamp, now-o.heardAt
	}
	return r
}

// other returns another node, and forgets nodes that nobody has asked for, or heard of, for long.
func (n *Node) other(id uint64, now time.Duration) *other {
	if o := n.others[id]; o != nil {
		return o
	}
	for id, o := range n.others {
		if now-max(o.asked, o.heardAt) > forgetAfter*n.cfg.Timeout {
			delete(n.others, id)
		}
	}
	o := &other{}
	n.others[id] = o
	return o
}

// Of returns the last report of a node, and whether it counts.
func (n *Node) Of(id uint64) (f Figure, weight int, counts bool) {
	now := n.cfg.Clock()
	n.mu.Lock()
	defer n.mu.Unlock()
	if id == n.cfg.ID {
		return n.ownLocked(now), n.weight, true
	}
	o := n.others[id]
	if o == nil || !o.heard {
		return Figure{}, DefaultWeight, false
	}
	return o.figure, o.weight, n.fresh(o, now)
}

// Due reports whether some node may be owed a report. A node that no group has named to Owed yet is none.
func (n *Node) Due() bool { return int64(n.cfg.Clock()) >= n.due.Load() }

// Owed calls tell for each of the nodes that is owed a report: a node is owed one in each election timeout, and
// reportsPerTimeout while this node writes. The caller sends it. Nothing is allocated if nobody is owed any.
func (n *Node) Owed(nodes []uint64, tell func(to uint64, r Report)) {
	now := n.cfg.Clock()
	n.mu.Lock()
	defer n.mu.Unlock()
	if int64(now) < n.due.Load() && !slices.ContainsFunc(nodes, func(id uint64) bool { return id != n.cfg.ID && n.others[id] == nil }) {
		return
	}
	every := n.cfg.Timeout
	if n.ownLocked(now).Sync > 0 {
		every /= reportsPerTimeout
	}
	for _, id := range nodes {
		if id == n.cfg.ID {
			continue
		}
		o := n.other(id, now)
		o.asked = now
		if o.sent && now-o.sentAt < every {
			continue
		}
		o.sent, o.sentAt = true, now
		tell(id, n.report(o, now))
	}
	due := now + every
	for _, o := range n.others {
		if now-o.asked <= reportsLast*n.cfg.Timeout { // else no group of this node has the member any more
			due = min(due, o.sentAt+every)
		}
	}
	n.due.Store(int64(due))
}

// Seen is a node as another sees it.
type Seen struct {
	Node   uint64
	Weight int
	Health Figure
	// Age is the time since the report; 0 for the node's own figure. Counts says that the report is new
	// enough to count.
	Age    time.Duration
	Counts bool
}

// Seen returns this node, and the nodes that have sent a report, by id.
func (n *Node) Seen() []Seen {
	now := n.cfg.Clock()
	n.mu.Lock()
	defer n.mu.Unlock()
	seen := []Seen{{Node: n.cfg.ID, Weight: n.weight, Health: n.ownLocked(now), Counts: true}}
	for id, o := range n.others {
		if o.heard {
			seen = append(seen, Seen{Node: id, Weight: o.weight, Health: o.figure, Age: now - o.heardAt, Counts: n.fresh(o, now)})
		}
	}
	slices.SortFunc(seen, func(a, b Seen) int { return cmp.Compare(a.Node, b.Node) })
	return seen
}
