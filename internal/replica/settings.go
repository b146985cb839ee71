// Copyright 2026 The Weft Authors
// SPDX-License-Identifier: Apache-2.0

package replica

import (
	"errors"
	"fmt"
	"hash/crc32"
	"maps"
	"slices"
	"strings"
	"time"

	"github.com/weftraft/weft/internal/members"
	"github.com/weftraft/weft/internal/wire"
)

// Some settings of members have to fit each other, and no member sees by itself that they do not.
//
// A setting that decides what a command does, such as how many sessions a state keeps, must be equal
// at all replicas, or their states come apart without a word. The state machine names such settings,
// and each Raft message carries a digest of them. A message with another digest is not looked at, so
// that replicas with unequal settings never apply entries that the other one has proposed: a member
// that is alone with its setting is left behind, and the others go on. A member of an earlier version
// sends no digest, and what is not known is not compared.
//
// Other settings only have to be near each other: a leader whose heartbeats are as rare as a
// follower's election timeout is deposed again and again. A misfit of these is reported, and no more,
// because a group with such members works after a fashion, and has to while an operator changes them
// one by one.
//
// A node tells its settings in words to the members at its start, to a peer that it first hears from,
// and to a peer whose digest differs, so that a report names both nodes and both values.
type agreement struct {
	*facts
	post func(to uint64, body wire.Body)

	own    []wire.Setting
	digest uint32 // of those that must be equal; 0: none
	peers  map[uint64]*settingsOf
}

// settingsOf is what is known of a peer's settings.
type settingsOf struct {
	all  []wire.Setting // nil: not known
	asks int            // since the peer was last known to be cut off
	at   uint64         // tick of the last question, or of the last words after a message was refused
	// misfit is nil, or what does not fit. bars: nothing is taken from the peer.
	misfit error
	bars   bool
}

// maxAsks is how often a peer is asked in vain. A peer of an earlier version never answers.
const maxAsks = 6

// The names of settings that the host compares.
const (
	heartbeatSetting = "heartbeat interval"
	electionSetting  = "election timeout"
)

// newAgreement returns what a replica tells its peers.
func newAgreement(f *facts, post func(to uint64, body wire.Body)) agreement {
	c := &f.cfg
	a := agreement{facts: f, post: post, peers: map[uint64]*settingsOf{}}
	sum := crc32.New(crc32.MakeTable(crc32.Castagnoli))
	for _, s := range slices.SortedFunc(slices.Values(c.Equal), func(x, y Setting) int { return strings.Compare(x.Name, y.Name) }) {
		a.own = append(a.own, wire.Setting{Must: true, Name: s.Name, Value: s.Value})
		fmt.Fprintf(sum, "%q=%q;", s.Name, s.Value)
		a.digest = max(1, sum.Sum32())
	}
	if c.Tick == 0 {
		return a
	}
	interval := func(ticks int) string { return (time.Duration(ticks) * c.Tick).String() }
	a.own = append(a.own,
		wire.Setting{Name: heartbeatSetting, Value: interval(c.HeartbeatTick)},
		wire.Setting{Name: electionSetting, Value: interval(c.ElectionTick)},
		wire.Setting{Name: "PreVote", Value: fmt.Sprint(!c.NoPreVote)},
		wire.Setting{Name: "CheckQuorum", Value: fmt.Sprint(!c.NoCheckQuorum)})
	return a
}

// agrees reports whether a message comes from a replica whose settings are equal where they must be,
// as far as is known.
func (a *agreement) agrees(from uint64, digest uint32) bool {
	if len(a.own) == 0 {
		return true
	}
	p := a.of(from)
	fits := digest == 0 || a.digest == 0 || digest == a.digest
	if fits && p.bars {
		p.misfit, p.bars = nil, false // the peer was started anew, and says what it is set to now
	}
	pause := uint64(a.cfg.ElectionTick) << min(p.asks, maxAsks)
	if (p.all == nil && p.asks < maxAsks || !fits) && (p.asks == 0 || a.ticks-p.at >= pause) {
		p.asks, p.at = p.asks+1, a.ticks
		a.post(from, wire.Settings{Ask: true, All: a.own})
	}
	if !fits {
		a.count.Strangers++
		p.bars = true
	}
	return fits
}

// of returns what is known of a peer.
func (a *agreement) of(peer uint64) *settingsOf {
	p := a.peers[peer]
	if p == nil {
		p = &settingsOf{}
		a.peers[peer] = p
	}
	return p
}

// tell tells the members at the start what this node is set to. Members with a setting that
// bars them are asked now and then, because such a member may be set right, and have no reason to talk
// to this node.
func (a *agreement) tell() {
	if len(a.own) == 0 || a.ticks%(uint64(a.cfg.ElectionTick)<<maxAsks) != 1 {
		return
	}
	for _, id := range slices.Concat(a.host.conf.GetVoters(), a.host.conf.GetLearners()) {
		if p := a.peers[id]; id != a.cfg.ID && (a.ticks == 1 || p != nil && p.bars) {
			a.post(id, wire.Settings{Ask: true, All: a.own})
		}
	}
}

// receive takes a peer's settings.
func (a *agreement) receive(from uint64, s wire.Settings) {
	if len(a.own) == 0 {
		return
	}
	p := a.of(from)
	if s.Ask {
		a.post(from, wire.Settings{All: a.own})
	}
	news := p.all == nil || !slices.Equal(p.all, s.All)
	p.all = append([]wire.Setting{}, s.All...)
	if !news {
		return
	}
	p.misfit, p.bars = a.compare(from, p.all)
	switch {
	case p.bars:
		a.cfg.Logger.Errorf("%v: nothing is taken from node %d, and what must be equal decides what commands do; find out which of the two was started with the wrong setting, and start that one anew", p.misfit, from)
	case p.misfit != nil:
		a.cfg.Logger.Errorf("%v: give all members the same settings", p.misfit)
	}
}

// compare compares a peer's settings with this node's. bars reports that some differ that must be equal.
func (a *agreement) compare(from uint64, theirs []wire.Setting) (_ error, bars bool) {
	var found []string
	differ := func(own, their wire.Setting, because string) {
		found = append(found, fmt.Sprintf("%s is %q at node %d and %q at node %d%s", own.Name, own.Value, a.cfg.ID, their.Value, from, because))
	}
	mine, other := byName(a.own), byName(theirs)
	for _, own := range a.own {
		their, known := other[own.Name]
		switch {
		case own.Must && a.digest != 0 && hasMust(theirs) && own != their:
			differ(own, their, "")
			bars = true
		case own.Must || !known:
		case own.Name == heartbeatSetting:
			if h, e := interval(their), interval(mine[electionSetting]); h > 0 && e < 2*h {
				differ(mine[electionSetting], their, ", which is the "+heartbeatSetting+" there: under that leader this node begins elections without need")
			}
		case own.Name == electionSetting:
			if h, e := interval(mine[heartbeatSetting]), interval(their); e > 0 && e < 2*h {
				differ(mine[heartbeatSetting], their, ", which is the "+electionSetting+" there: under this leader that node begins elections without need")
			}
		case own != their:
			differ(own, their, "")
		}
	}
	for _, their := range theirs {
		if _, known := mine[their.Name]; their.Must && a.digest != 0 && !known {
			differ(wire.Setting{Name: fmt.Sprintf("%q", their.Name)}, their, "")
			bars = true
		}
	}
	if len(found) == 0 {
		return nil, false
	}
	return fmt.Errorf("%w, in group %d: %s", ErrSettings, a.cfg.Group, strings.Join(found, "; ")), bars
}

func byName(all []wire.Setting) map[string]wire.Setting {
	m := map[string]wire.Setting{}
	for _, s := range all {
		m[s.Name] = s
	}
	return m
}

func hasMust(all []wire.Setting) bool {
	return slices.ContainsFunc(all, func(s wire.Setting) bool { return s.Must })
}

// interval returns the value of a setting, or 0 if it is no interval of this version's.
func interval(s wire.Setting) time.Duration {
	d, err := time.ParseDuration(s.Value)
	if err != nil || d < 0 {
		return 0
	}
	return d
}

// cutOff lets a peer be asked again: it may come back as another version.
func (a *agreement) cutOff(peer uint64) {
	if p := a.peers[peer]; p != nil {
		p.asks = 0
	}
}

// left reports whether a peer is no member, as far as this node knows the members.
func (a *agreement) left(peer uint64) bool {
	return len(a.host.conf.GetVoters()) > 0 && !members.Has(a.host.conf, peer)
}

// misfits returns what does not fit, by member; nil: nothing.
func (a *agreement) misfits() (m map[uint64]error) {
	for id, p := range a.peers {
		if p.misfit == nil || a.left(id) {
			continue
		}
		if m == nil {
			m = map[uint64]error{}
		}
		m[id] = p.misfit
	}
	return m
}

// barred reports whether a peer is known to have another setting that must be equal.
func (a *agreement) barred(peer uint64) bool {
	p := a.peers[peer]
	return p != nil && p.bars
}

// barring returns why nothing is taken from some peers, or nil.
func (a *agreement) barring() error {
	var errs []error
	for _, id := range slices.Sorted(maps.Keys(a.peers)) {
		if p := a.peers[id]; p.bars && p.misfit != nil && !a.left(id) {
			errs = append(errs, p.misfit)
		}
	}
	return errors.Join(errs...)
}
