// Copyright 2026 The Weft Authors
// SPDX-License-Identifier: Apache-2.0

package weft

import (
	"bytes"
	"encoding/json"
	"errors"
	"fmt"
	"hash/crc32"
	"log/slog"
	"maps"
	"os"
	"path/filepath"
	"sync"
)

// book is what a node knows of addresses, and of members that were removed. A fact
// comes from the log of some group, or from another node's book; the own address comes from
// the options. So facts may come late, twice and in any order: an address has a version, the
// highest version counts, and a removal is never taken back. Two books that have heard the same
// facts are equal, whatever the order.
//
// The book is in a file of its own, beside the log, and neither in the user's state nor in the
// host's bytes: a service can go back to package rawnode with the same directories, and a
// snapshot of a group is the user's state alone. The order of writing makes that safe. A
// group says that an entry is durable (and may leave the log) only when the file has the
// entry's fact, see [machine.Durable]. A node that got the state by a snapshot
// misses the facts of entries that it never saw, and hears them from any other node
// (see keeper).
//
// Rejected: addresses in the contexts of configuration changes. Replacing an address would
// be a change of members, and these wait for each other; and no state machine sees them.
type book struct {
	cluster, node uint64
	path          string
	logger        *slog.Logger
	dial          func(id uint64, address string) // tells the transport; set before groups are opened

	file sync.Mutex // held while the file is written; taken before mu

	mu      sync.Mutex // never held while the disk is waited for
	facts   facts
	logged  uint64              // version of this node's own address that a group has in its log
	peers   map[uint64]string   // Options.Peers
	noted   map[uint64]string   // Options.Peers of the last start, as in the file
	chosen  map[uint64]override // addresses of Options.Peers that are newer than the facts
	founded map[uint64]bool     // groups that [Recover] had begin anew with this node
	unsaved map[uint64]uint64   // by group: the first index whose facts the file lacks
	saving  map[uint64]uint64   // the part of it that is being written
	dirty   bool                // the file lacks something
	sum     uint64              // of the facts, 0 if they have changed since it was made
	copy    facts               // as of sum; never changed
}

// facts are what books tell each other.
type facts struct {
	Addresses map[uint64]located `json:"addresses"`
	// Removed are the ids that a group does not take again, by group. The value is true once the
	// group is known to go on without the node.
	Removed map[uint64]map[uint64]bool `json:"removed"`
}

// located is where a node is.
type located struct {
	Address string `json:"address"`
	Version uint64 `json:"version"`
}

// later reports whether l is newer than other. Of two addresses with one version, which
// two callers have set at the same moment, all nodes choose the same.
func (l located) later(other located) bool {
	return l.Version > other.Version || l.Version == other.Version && l.Address > other.Address
}

// next is the version of an address that follows. Behind the last version an address no longer
// changes, which only a node that lies can bring about.
func (l located) next() uint64 { return min(l.Version+1, maxBookVersion) }

// override is an address of Options.Peers that an operator has changed between two starts:
// newer than facts up to a version.
type override struct {
	Address string `json:"address"`
	Over    uint64 `json:"over"`
}

// Bounds of books, as the facts of others are not trusted.
const (
	maxBookNodes   = 4096
	maxBookRemoved = 64 << 10
	maxBookVersion = 1 << 48
	maxBookBytes   = 4 << 20
)

// check returns what is wrong with facts.
func (f facts) check() error {
	if len(f.Addresses) > maxBookNodes {
		return fmt.Errorf("addresses of %d nodes, want at most %d", len(f.Addresses), maxBookNodes)
	}
	for id, l := range f.Addresses {
		if id == 0 || id > MaxID || l.Version == 0 || l.Version > maxBookVersion {
			return fmt.Errorf("node %d, version %d: want an id of 1 to %d, and a version of 1 to %d", id, l.Version, uint64(MaxID), uint64(maxBookVersion))
		}
		if err := checkAddress(l.Address); err != nil {
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
	if n := f.removals(); n > maxBookRemoved {
		return fmt.Errorf("%d removed members, want at most %d", n, maxBookRemoved)
	}
	return nil
}

// merge adds what is new in other, and reports whether there was anything.
func (f *facts) merge(other facts) (changed bool) {
	for id, l := range other.Addresses {
		if _, known := f.Addresses[id]; !known && len(f.Addresses) >= maxBookNodes-1 { // one is this node's
			continue
		}
		if l.later(f.Addresses[id]) {
			f.Addresses[id], changed = l, true
		}
	}
	for group, ids := range other.Removed {
		for id, gone := range ids {
			was, known := f.Removed[group][id]
			if known && (was || !gone) || !known && f.removals() >= maxBookRemoved {
				continue
			}
			if f.Removed[group] == nil {
				f.Removed[group] = map[uint64]bool{}
			}
			f.Removed[group][id], changed = gone, true
		}
	}
	return changed
}

// removals returns how many members of all groups were removed.
func (f facts) removals() (n int) {
	for _, ids := range f.Removed {
		n += len(ids)
	}
	return n
}

func (f facts) clone() facts {
	c := facts{Addresses: maps.Clone(f.Addresses), Removed: map[uint64]map[uint64]bool{}}
	for group, ids := range f.Removed {
		c.Removed[group] = maps.Clone(ids)
	}
	return c
}

func noFacts() facts {
	return facts{Addresses: map[uint64]located{}, Removed: map[uint64]map[uint64]bool{}}
}

// bookFile is the file's content, before its checksum.
type bookFile struct {
	Format  int    `json:"format"`
	Cluster uint64 `json:"cluster"`
	Node    uint64 `json:"node"`
	facts
	// Logged is the version of this node's own address that a group has in its log.
	Logged uint64              `json:"logged"`
	Peers  map[uint64]string   `json:"peers"`
	Chosen map[uint64]override `json:"chosen"`
	// Founded are the groups that [Recover] had begin anew with this node. If a second survivor
	// was recovered, by mistake, its book says that this node is lost; that is not believed.
	Founded map[uint64]bool `json:"founded,omitempty"`
}

const bookFormat = 1

var castagnoli = crc32.MakeTable(crc32.Castagnoli)

// openBook is loadBook for a node that is opened: the options are noted for the next start.
func openBook(o Options) (*book, error) {
	b, err := loadBook(o)
	if err != nil {
		return nil, err
	}
	b.noted, b.dirty = o.Peers, true
	return b, b.save()
}

// loadBook reads the book of a node, if there is one, and compares the options with those of
// the last start.
func loadBook(o Options) (*book, error) {
	b := &book{
		cluster: o.Cluster, node: o.ID, path: filepath.Join(o.Dir, "addresses"), logger: o.Logger, facts: noFacts(),
		peers: o.Peers, chosen: map[uint64]override{}, founded: map[uint64]bool{}, unsaved: map[uint64]uint64{}, dirty: true,
	}
	data, err := os.ReadFile(b.path)
	if errors.Is(err, os.ErrNotExist) {
		return b, nil
	}
	if err != nil {
		return nil, fmt.Errorf("read the addresses of members: %w", err)
	}
	old, err := readBook(data)
	if err != nil {
		return nil, fmt.Errorf("%w: %s: %w: remove the file, and see that Options.Peers has the present address of a member", ErrBook, b.path, err)
	}
	if old.Cluster != o.Cluster || old.Node != o.ID {
		return nil, fmt.Errorf("%w: %s is of node %d of cluster %d, this is node %d of cluster %d", ErrIdentity, b.path, old.Node, old.Cluster, o.ID, o.Cluster)
	}
	b.facts.merge(old.facts)
	maps.Copy(b.chosen, old.Chosen)
	maps.Copy(b.founded, old.Founded)
	b.logged, b.noted = old.Logged, old.Peers
	for id, address := range o.Peers {
		if was, named := old.Peers[id]; named && was != address {
			b.chosen[id] = override{Address: address, Over: b.facts.Addresses[id].Version}
		}
	}
	return b, nil
}

// readBook reads a book's file: a line of JSON, and a line with its checksum.
func readBook(data []byte) (bookFile, error) {
	var f bookFile
	text, sum, ok := bytes.Cut(data, []byte("\n"))
	if want := fmt.Sprintf("%08x\n", crc32.Checksum(text, castagnoli)); !ok || string(sum) != want {
		return f, errors.New("its checksum does not match")
	}
	if err := json.Unmarshal(text, &f); err != nil {
		return f, err
	}
	if f.Format != bookFormat {
		return f, fmt.Errorf("it has format %d, this version reads %d: run the version that wrote it", f.Format, bookFormat)
	}
	return f, f.check()
}

// save writes the file beside the old one and puts it in its place, if it lacks something.
func (b *book) save() error {
	b.file.Lock()
	defer b.file.Unlock()
	return b.write()
}

// write is save for a caller that holds b.file.
func (b *book) write() error {
	text, err := b.encode()
	if err != nil || text == nil {
		return err
	}
	err = replaceFile(b.path, text)
	b.mu.Lock()
	defer b.mu.Unlock()
	if err != nil {
		b.dirty = true
		maps.Copy(b.unsaved, b.saving) // whose indexes are the lower ones
		err = fmt.Errorf("write the addresses of members: %w", err)
	}
	b.saving = nil
	return err
}

// encode returns the content of the file, which then counts as written, or nil if the file lacks
// nothing.
func (b *book) encode() ([]byte, error) {
	b.mu.Lock()
	defer b.mu.Unlock()
	if !b.dirty {
		return nil, nil
	}
	text, err := json.Marshal(bookFile{
		Format: bookFormat, Cluster: b.cluster, Node: b.node, facts: b.facts,
		Logged: b.logged, Peers: b.noted, Chosen: b.chosen, Founded: b.founded,
	})
	if err != nil {
		return nil, fmt.Errorf("encode the addresses of members: %w", err)
	}
	b.dirty, b.saving, b.unsaved = false, b.unsaved, map[uint64]uint64{}
	return fmt.Appendf(text, "\n%08x\n", crc32.Checksum(text, castagnoli)), nil
}

// replaceFile makes data the content of a file, durably and in one step.
func replaceFile(path string, data []byte) error {
	next := path + ".next"
	f, err := os.Create(next)
	if err != nil {
		return err
	}
	_, err = f.Write(data)
	if err == nil {
		err = f.Sync()
	}
	if err = errors.Join(err, f.Close()); err == nil {
		err = os.Rename(next, path)
	}
	if err != nil {
		return errors.Join(err, os.Remove(next))
	}
	return syncDir(filepath.Dir(path))
}

// syncDir makes the names in a directory durable.
func syncDir(path string) error {
	dir, err := os.Open(path)
	if err != nil {
		return err
	}
	return errors.Join(dir.Sync(), dir.Close())
}

// learn takes facts of an entry that is applied, or, with group 0, of another node. The keeper
// saves them.
func (b *book) learn(f facts, group, index uint64) {
	b.mu.Lock()
	defer b.mu.Unlock()
	if _, leaves := f.Removed[group][b.node]; leaves && b.founded[group] {
		delete(b.founded, group) // the new group itself removes its founder
		b.dirty = true
	}
	changed := b.facts.merge(f)
	if changed {
		b.warnOfTwins(f)
		b.sum, b.dirty = 0, true
	}
	if _, waits := b.unsaved[group]; !waits && group != 0 && (b.dirty || b.saving != nil) {
		b.unsaved[group] = index // also if the facts came from a node before, and are not saved yet
	}
	if !changed {
		return
	}
	if b.dial != nil {
		for id := range f.Addresses {
			b.tell(id)
		}
	}
}

// warnOfTwins says that another node takes the founder of a group for lost. The caller
// holds b.mu.
func (b *book) warnOfTwins(f facts) {
	for group := range b.founded {
		if f.Removed[group][b.node] {
			b.logger.Error("two survivors of a group were recovered, and are two groups now: keep one, and stop the other for good", "group", group, "node", b.node)
		}
	}
}

// found notes that a group begins anew with this node, and goes on without others. The caller
// saves that.
func (b *book) found(group uint64, without []uint64) {
	b.mu.Lock()
	defer b.mu.Unlock()
	gone := map[uint64]bool{}
	for _, id := range without {
		gone[id] = true
	}
	b.facts.merge(facts{Removed: map[uint64]map[uint64]bool{group: gone}})
	b.founded[group] = true
	b.sum, b.dirty = 0, true
}

// assert makes address this node's own: a node knows best where it is. The result is the
// fact, and whether a group has it in its log.
func (b *book) assert(address string) (fact located, logged bool) {
	b.mu.Lock()
	defer b.mu.Unlock()
	if fact = b.facts.Addresses[b.node]; fact.Address != address {
		fact = located{Address: address, Version: fact.next()}
		b.facts.Addresses[b.node] = fact
		b.sum, b.dirty = 0, true
	}
	return fact, b.logged >= fact.Version
}

// setLogged notes that a group has a version of this node's own address in its log.
func (b *book) setLogged(version uint64) {
	b.mu.Lock()
	defer b.mu.Unlock()
	b.logged, b.dirty = version, true
}

// trySave is save, unless that is under way. What cannot be written now, because a disk is full,
// is written later; until then the log keeps what the file lacks.
func (b *book) trySave() {
	if !b.file.TryLock() {
		return
	}
	defer b.file.Unlock()
	if err := b.write(); err != nil {
		b.logger.Warn("the addresses of members are not saved, the log keeps them", "node", b.node, "error", err)
	}
}

// tell gives the transport the address of a node. The caller holds b.mu.
func (b *book) tell(id uint64) {
	if address := b.lookup(id); address != "" && id != b.node {
		b.dial(id, address)
	}
}

// hint has the transport dial the address that a node itself has named, and reports whether the book
// has another one. The book's is newer, and may be wrong, for example if an operator has mistyped
// the address of a node that was down. Only at the other address the node can hear that, and object.
func (b *book) hint(id uint64, address string) bool {
	b.mu.Lock()
	defer b.mu.Unlock()
	if known := b.lookup(id); address == "" || id == b.node || known == "" || known == address {
		return false
	}
	b.dial(id, address)
	return true
}

// dialAgain has the transport dial the address in the book.
func (b *book) dialAgain(id uint64) {
	b.mu.Lock()
	defer b.mu.Unlock()
	b.tell(id)
}

// lookup returns the address of a node, or an empty one. The caller holds b.mu.
func (b *book) lookup(id uint64) string {
	fact := b.facts.Addresses[id]
	if o, ok := b.chosen[id]; ok && fact.Version <= o.Over {
		return o.Address
	}
	if fact.Address != "" {
		return fact.Address
	}
	return b.peers[id]
}

// address returns the address of a node, or an empty one.
func (b *book) address(id uint64) string {
	b.mu.Lock()
	defer b.mu.Unlock()
	return b.lookup(id)
}

// fact returns the replicated address of a node, or zero.
func (b *book) fact(id uint64) located {
	b.mu.Lock()
	defer b.mu.Unlock()
	return b.facts.Addresses[id]
}

// all returns the addresses of all nodes that are known.
func (b *book) all() map[uint64]string {
	b.mu.Lock()
	defer b.mu.Unlock()
	all := map[uint64]string{}
	for id := range b.peers {
		all[id] = b.lookup(id)
	}
	for id := range b.facts.Addresses {
		all[id] = b.lookup(id)
	}
	return all
}

// removed reports whether a group does not take a node again, and whether the group is
// known to go on without the node.
func (b *book) removed(group, id uint64) (barred, gone bool) {
	b.mu.Lock()
	defer b.mu.Unlock()
	gone, barred = b.facts.Removed[group][id]
	return barred, gone && (id != b.node || !b.founded[group])
}

// leaving returns the ids that a group does not take again, and of which nobody has said
// that they are gone.
func (b *book) leaving(group uint64) (ids []uint64) {
	b.mu.Lock()
	defer b.mu.Unlock()
	for id, gone := range b.facts.Removed[group] {
		if !gone {
			ids = append(ids, id)
		}
	}
	return ids
}

// lacks returns the first index of a group whose facts the file lacks, or 0.
func (b *book) lacks(group uint64) uint64 {
	b.trySave()
	b.mu.Lock()
	defer b.mu.Unlock()
	if index, waits := b.saving[group]; waits {
		return index
	}
	return b.unsaved[group]
}
