// Copyright 2026 The Weft Authors
// SPDX-License-Identifier: Apache-2.0

package book

import (
	"encoding/json"
	"fmt"
	"maps"

	"github.com/weftraft/weft/internal/address"
	"github.com/weftraft/weft/internal/marked"
)

// Facts are what books tell each other.
type Facts struct {
	Addresses map[uint64]Located `json:"addresses"`
	// Removed are the ids that a group does not take again, by group. The value is true once the
	// group is known to go on without the node.
	Removed map[uint64]map[uint64]bool `json:"removed"`
	// Lost are the ids that a weft.Recover has given up, by group, with the node that was recovered.
	// The group that begins anew there does not take the ids again.
	Lost map[uint64]map[uint64]uint64 `json:"lost,omitempty"`
}

// Located is where a node is.
type Located struct {
	Address string `json:"address"`
	Version uint64 `json:"version"`
}

// later reports whether l is newer than other. Of two addresses with one version, which
// two callers have set at the same moment, all nodes choose the same.
func (l Located) later(other Located) bool {
	return l.Version > other.Version || l.Version == other.Version && l.Address > other.Address
}

// Next is the version of an address that follows. Behind the last version an address no longer
// changes, which only a node that lies can bring about.
func (l Located) Next() uint64 { return min(l.Version+1, maxBookVersion) }

// override is an address of Options.Peers that an operator has changed between two starts:
// newer than facts up to a version.
type override struct {
	Address string `json:"address"`
	Over    uint64 `json:"over"`
}

// Bounds of books, as the facts of others are not trusted.
const (
	// MaxID is the highest id of a node.
	MaxID = 1<<62 - 1

	maxBookNodes   = 4096
	maxBookRemoved = 64 << 10
	maxBookVersion = 1 << 48
	maxBookBytes   = 4 << 20
	maxBookOthers  = 4 // addresses of one node in book.also
)

// check returns what is wrong with facts.
func (f Facts) check() error {
	if len(f.Addresses) > maxBookNodes {
		return fmt.Errorf("addresses of %d nodes, want at most %d", len(f.Addresses), maxBookNodes)
	}
	for id, l := range f.Addresses {
		if id == 0 || id > MaxID || l.Version == 0 || l.Version > maxBookVersion {
			return fmt.Errorf("node %d, version %d: want an id of 1 to %d, and a version of 1 to %d", id, l.Version, uint64(MaxID), uint64(maxBookVersion))
		}
		if err := address.Check(l.Address); err != nil {
			return fmt.Errorf("node %d: %w", id, err)
		}
	}
	for group, ids := range f.Removed {
		for id := range ids {
			if group == 0 || id == 0 || id > MaxID {
				return fmt.Errorf("removed member %d of group %d; want a group of 1 or more, and ids of 1 to %d", id, group, uint64(MaxID))
			}
		}
	}
	for group, ids := range f.Lost {
		for id, by := range ids {
			if group == 0 || id == 0 || id > MaxID || by == 0 || by > MaxID {
				return fmt.Errorf("lost member %d of group %d, which node %d has given up; want a group of 1 or more, and ids of 1 to %d", id, group, by, uint64(MaxID))
			}
		}
	}
	if n := count(f.Removed) + count(f.Lost); n > maxBookRemoved {
		return fmt.Errorf("%d removed members, want at most %d", n, maxBookRemoved)
	}
	return nil
}

// merge adds what is new in other, and reports whether there was anything, and whether something
// had no room.
func (f *Facts) merge(other Facts) (changed, full bool) {
	for id, l := range other.Addresses {
		if _, known := f.Addresses[id]; !known && len(f.Addresses) >= maxBookNodes-1 { // one is this node's
			full = true
		} else if l.later(f.Addresses[id]) {
			f.Addresses[id], changed = l, true
		}
	}
	room := maxBookRemoved - count(f.Removed) - count(f.Lost)
	c1, f1 := mergeMembers(f.Removed, other.Removed, &room, func(was, gone bool) bool { return gone && !was })
	c2, f2 := mergeMembers(f.Lost, other.Lost, &room, func(was, by uint64) bool { return by > was })
	return changed || c1 || c2, full || f1 || f2
}

// mergeMembers is merge for values by group and member, of which a newer one counts.
func mergeMembers[V any](all, other map[uint64]map[uint64]V, room *int, newer func(was, is V) bool) (changed, full bool) {
	for group, ids := range other {
		for id, v := range ids {
			was, known := all[group][id]
			switch {
			case known && !newer(was, v):
			case !known && *room == 0:
				full = true
			default:
				if !known {
					*room--
				}
				set(all, group, id, v)
				changed = true
			}
		}
	}
	return changed, full
}

// count returns how many members of all groups are in all.
func count[V any](all map[uint64]map[uint64]V) (n int) {
	for _, ids := range all {
		n += len(ids)
	}
	return n
}

// set sets the value of a member of a group.
func set[V any](all map[uint64]map[uint64]V, group, id uint64, v V) {
	if all[group] == nil {
		all[group] = map[uint64]V{}
	}
	all[group][id] = v
}

func (f Facts) clone() Facts {
	return Facts{Addresses: maps.Clone(f.Addresses), Removed: cloneMembers(f.Removed), Lost: cloneMembers(f.Lost)}
}

func cloneMembers[V any](all map[uint64]map[uint64]V) map[uint64]map[uint64]V {
	c := map[uint64]map[uint64]V{}
	for group, ids := range all {
		c[group] = maps.Clone(ids)
	}
	return c
}

func noFacts() Facts {
	return Facts{Addresses: map[uint64]Located{}, Removed: map[uint64]map[uint64]bool{}, Lost: map[uint64]map[uint64]uint64{}}
}

// Command returns the command that tells a group facts.
func (f Facts) Command() ([]byte, error) {
	body, err := json.Marshal(f)
	if err != nil {
		return nil, fmt.Errorf("encode facts: %w", err)
	}
	return marked.Command(marked.Facts, body), nil
}

// Decode reads a command of the module. It returns no facts for another kind than
// [marked.Facts], or for a body that this version does not take.
func Decode(command []byte) (Facts, error) {
	f := Facts{}
	kind, body := marked.Parts(command)
	if kind != marked.Facts {
		return f, fmt.Errorf("kind %d is not known to this version", kind)
	}
	if err := json.Unmarshal(body, &f); err != nil {
		return Facts{}, err
	}
	if err := f.check(); err != nil {
		return Facts{}, err
	}
	return f, nil
}
