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
	"slices"
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
// snapshot of a group is the user's state alone. The order of writing makes that safe: the
// file has the facts of an entry before the user's state machine has the entry, see
// [machine.Apply], because a restart begins behind the state's own durable index. A node that
// got the state by a snapshot misses the facts of entries that it never saw, and hears them from
// any other node (see keeper).
//
// Rejected: addresses in the contexts of configuration changes. Replacing an address would
// be a change of members, and these wait for each other; and no state machine sees them.
type book struct {
	cluster, node uint64
	path          string
	logger        *slog.Logger
	dial          func(id uint64, address string) // tells the transport; set before groups are opened

	file sync.Mutex // held while the file is written; taken before mu

	mu     sync.Mutex // never held while the disk is waited for
	facts  facts
	logged uint64              // version of this node's own address that a group has in its log
	peers  map[uint64]string   // Options.Peers
	noted  map[uint64]string   // Options.Peers of the last start, as in the file
	chosen map[uint64]override // addresses of Options.Peers that are newer than the facts
	also   map[uint64][]string // other addresses that were named, for [Recover] to ask at
	claims map[uint64]claim    // by group: answers to the word that this node is lost
	dirty  bool                // the file lacks something
	sum    uint64              // of the facts, 0 if they have changed since it was made
	copy   facts               // as of sum; never changed
	full   bool                // a fact was left out, because there is no room
}

// claim is what a node makes of the word of another one that this node is lost, see [Recover].
type claim string

const (
	// claimNone: no such word, or no answer yet.
	claimNone claim = ""
	// claimObeyed: the node refuses calls, as after a removal.
	claimObeyed claim = "obeyed"
	// claimDenied: the group goes on with this node, which leads the group anew by a Recover of its
	// own, or has a leader and a majority.
	claimDenied claim = "denied"
)

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
	Also   map[uint64][]string `json:"also,omitempty"`
	Claims map[uint64]claim    `json:"claims,omitempty"`
}

const bookFormat = 1

// bookName is the name of the file in Options.Dir.
const bookName = "addresses"

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
		cluster: o.Cluster, node: o.ID, path: filepath.Join(o.Dir, bookName), logger: o.Logger, facts: noFacts(),
		peers: o.Peers, chosen: map[uint64]override{}, also: map[uint64][]string{}, claims: map[uint64]claim{}, dirty: true,
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
	maps.Copy(b.also, old.Also)
	maps.Copy(b.claims, old.Claims)
	b.logged, b.noted = old.Logged, old.Peers
	for id, address := range o.Peers {
		if was, named := old.Peers[id]; named && was != address {
			b.chosen[id] = override{Address: address, Over: b.facts.Addresses[id].Version}
			b.remember(id, was)
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
		return fmt.Errorf("write the addresses of members: %w", err)
	}
	return nil
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
		Logged: b.logged, Peers: b.noted, Chosen: b.chosen, Also: b.also, Claims: b.claims,
	})
	if err != nil {
		return nil, fmt.Errorf("encode the addresses of members: %w", err)
	}
	b.dirty = false
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

// learn takes facts of an entry that is applied, or of another node. The keeper saves them.
func (b *book) learn(f facts) {
	b.mu.Lock()
	defer b.mu.Unlock()
	before := map[uint64]string{}
	for id := range f.Addresses {
		before[id] = b.facts.Addresses[id].Address
	}
	changed, full := b.facts.merge(f)
	if full && !b.full {
		b.full = true
		b.logger.Error("the book of members is full, and facts are left out: begin a new cluster with a snapshot", "node", b.node, "nodes", len(b.facts.Addresses), "removed", count(b.facts.Removed)+count(b.facts.Lost))
	}
	if !changed {
		return
	}
	b.sum, b.dirty = 0, true
	for id, address := range before {
		if address != "" && address != b.facts.Addresses[id].Address {
			b.remember(id, address)
		}
		if b.dial != nil {
			b.tell(id)
		}
	}
}

// takes returns why a group must not get facts, because books have no room for them, or nil.
func (b *book) takes(f facts) error {
	b.mu.Lock()
	all := b.facts.clone()
	b.mu.Unlock()
	if _, full := all.merge(f); !full {
		return nil
	}
	return invalid("the cluster has used %d ids and removed %d members, the bounds are %d and %d: begin a new cluster with a snapshot of each group (Group.Snapshot, Restore)",
		len(all.Addresses), count(all.Removed)+count(all.Lost), maxBookNodes-1, maxBookRemoved)
}

// remember notes an address that a node had or has by another word than the book's. The caller
// holds b.mu, or has the book alone.
func (b *book) remember(id uint64, address string) {
	known := b.also[id]
	if slices.Contains(known, address) {
		return
	}
	b.also[id] = append(known[max(0, len(known)-maxBookOthers+1):len(known):len(known)], address)
	b.dirty = true
}

// everyAddress returns all addresses by which a node is or was known, the present one first.
func (b *book) everyAddress(id uint64) (all []string) {
	b.mu.Lock()
	defer b.mu.Unlock()
	for _, address := range append([]string{b.lookup(id), b.facts.Addresses[id].Address, b.peers[id], b.noted[id]}, b.also[id]...) {
		if address != "" && !slices.Contains(all, address) {
			all = append(all, address)
		}
	}
	return all
}

// found notes that a group begins anew with this node, and goes on without others. The caller
// saves that.
func (b *book) found(group uint64, without []uint64) {
	b.mu.Lock()
	defer b.mu.Unlock()
	for _, id := range without {
		set(b.facts.Lost, group, id, b.node)
	}
	b.claims[group] = claimDenied
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
// is written later.
func (b *book) trySave() {
	if !b.file.TryLock() {
		return
	}
	defer b.file.Unlock()
	if err := b.write(); err != nil {
		b.logger.Warn("the addresses of members are not saved yet", "node", b.node, "error", err)
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
	b.remember(id, address)
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

// removed reports whether a member was to be removed from a group, and whether the group is known
// to go on without the member.
func (b *book) removed(group, id uint64) (begun, gone bool) {
	b.mu.Lock()
	defer b.mu.Unlock()
	gone, begun = b.facts.Removed[group][id]
	return begun, gone
}

// barred reports whether a group does not take a node again.
func (b *book) barred(group, id uint64) bool {
	b.mu.Lock()
	defer b.mu.Unlock()
	_, removed := b.facts.Removed[group][id]
	_, lost := b.facts.Lost[group][id]
	return removed || lost
}

// lost returns the node that has recovered a group without this one, or 0, and what this node
// makes of that.
func (b *book) lost(group uint64) (by uint64, answer claim) {
	b.mu.Lock()
	defer b.mu.Unlock()
	return b.facts.Lost[group][b.node], b.claims[group]
}

// answer notes what this node makes of the word that it is lost.
func (b *book) answer(group uint64, answer claim) {
	b.mu.Lock()
	defer b.mu.Unlock()
	b.claims[group], b.dirty = answer, true
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
