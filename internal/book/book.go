// Copyright 2026 The Weft Authors
// SPDX-License-Identifier: Apache-2.0

package book

import (
	"bytes"
	"encoding/json"
	"errors"
	"fmt"
	"hash/crc32"
	"hash/crc64"
	"log/slog"
	"maps"
	"os"
	"path/filepath"
	"slices"
	"sync"

	"github.com/weftraft/weft/internal/files"
	"github.com/weftraft/weft/internal/invalid"
	"github.com/weftraft/weft/internal/members"
	"github.com/weftraft/weft/internal/quiet"
	"github.com/weftraft/weft/storage"
)

// Book is what a node knows of addresses, and of members that were removed. A fact
// comes from the log of some group, or from another node's book; the own address comes from
// the options. So facts may come late, twice and in any order: an address has a version, the
// highest version counts, and a removal is never taken back. Two books that have heard the same
// facts are equal, whatever the order.
//
// The book is in a file of its own, beside the log, and neither in the user's state nor in the
// host's bytes: a service can go back to package rawnode with the same directories, and a
// snapshot of a group is the user's state alone. The order of writing makes that safe: the
// file has the facts of an entry before the user's state machine has the entry, see
// package front, because a restart begins behind the state's own durable index. A node that
// got the state by a snapshot misses the facts of entries that it never saw, and hears them from
// any other node (see [Keeper]).
//
// Rejected: addresses in the contexts of configuration changes. Replacing an address would
// be a change of members, and these wait for each other; and no state machine sees them.
type Book struct {
	cluster, node uint64
	path          string
	inMemory      bool // there is no file
	logger        *slog.Logger
	lines         quiet.Log[string]               // by text: others may have them come as fast as they can
	dial          func(id uint64, address string) // tells the transport; set by SetDial

	file sync.Mutex // held while the file is written; taken before mu

	mu     sync.Mutex // never held while the disk is waited for
	facts  Facts
	logged uint64              // version of this node's own address that a group has in its log
	peers  map[uint64]string   // Options.Peers
	noted  map[uint64]string   // Options.Peers of the last start, as in the file
	chosen map[uint64]override // addresses of Options.Peers that are newer than the facts
	also   map[uint64][]string // other addresses that were named, for weft.Recover to ask at
	claims map[uint64]Claim    // by group: answers to the word that this node is lost
	dirty  bool                // the file lacks something
	sum    uint64              // of the facts, 0 if they have changed since it was made
	copy   Facts               // as of sum; never changed
	full   bool                // a fact was left out, because there is no room
}

// Claim is what a node makes of the word of another one that this node is lost, see weft.Recover.
type Claim string

const (
	// NoClaim: no such word, or no answer yet.
	NoClaim Claim = ""
	// Obeyed: the node refuses calls, as after a removal.
	Obeyed Claim = "obeyed"
	// Denied: the group goes on with this node, which leads the group anew by a Recover of its
	// own, or has a leader and a majority.
	Denied Claim = "denied"
)

// bookFile is the file's content, before its checksum.
type bookFile struct {
	Format  int    `json:"format"`
	Cluster uint64 `json:"cluster"`
	Node    uint64 `json:"node"`
	Facts
	// Logged is the version of this node's own address that a group has in its log.
	Logged uint64              `json:"logged"`
	Peers  map[uint64]string   `json:"peers"`
	Chosen map[uint64]override `json:"chosen"`
	Also   map[uint64][]string `json:"also,omitempty"`
	Claims map[uint64]Claim    `json:"claims,omitempty"`
}

const bookFormat = 1

// FileName is the name of the file in Config.Dir.
const FileName = "addresses"

// ErrDamaged is weft.ErrBook.
var ErrDamaged = errors.New("weft: the address book is damaged")

// ErrRemoved is weft.ErrRemoved.
var ErrRemoved = errors.New("weft: the node was removed from the group")

// RemovedBefore is the reason for not adding a node.
func RemovedBefore(group, id uint64) error {
	return fmt.Errorf("%w: node %d of group %d: start the node with an id that was never used, and an empty directory", ErrRemoved, id, group)
}

var castagnoli = crc32.MakeTable(crc32.Castagnoli)

// Config says whose book it is.
type Config struct {
	Cluster, Node uint64
	Dir           string            // empty: there is no file
	Peers         map[uint64]string // Options.Peers of package book
	Logger        *slog.Logger
}

// Open is Load for a node that is opened: the options are noted for the next start.
func Open(o Config) (*Book, error) {
	b, err := Load(o)
	if err != nil {
		return nil, err
	}
	if !maps.Equal(b.noted, o.Peers) {
		b.noted, b.dirty = o.Peers, true
	}
	return b, b.Save() // which writes nothing at a usual start: the disk may be full
}

// Load reads the book of a node, if there is one, and compares the options with those of
// the last start.
func Load(o Config) (*Book, error) {
	b := &Book{
		cluster: o.Cluster, node: o.Node, path: filepath.Join(o.Dir, FileName), logger: o.Logger, facts: noFacts(),
		peers: o.Peers, chosen: map[uint64]override{}, also: map[uint64][]string{}, claims: map[uint64]Claim{}, dirty: true,
	}
	if b.inMemory = o.Dir == ""; b.inMemory {
		return b, nil
	}
	data, err := os.ReadFile(b.path)
	if errors.Is(err, os.ErrNotExist) {
		return b, nil
	}
	if err != nil {
		return nil, fmt.Errorf("read the addresses of members: %w", err)
	}
	old, err := readBook(data)
	if errors.Is(err, storage.ErrVersion) {
		return nil, fmt.Errorf("read the addresses of members in %s: %w", b.path, err)
	}
	if err != nil {
		return nil, fmt.Errorf("%w: %s: %w: remove the file, and see that Options.Peers has the present address of a member", ErrDamaged, b.path, err)
	}
	if old.Cluster != o.Cluster || old.Node != o.Node {
		return nil, fmt.Errorf("%w: %s is of node %d of cluster %d, this is node %d of cluster %d", storage.ErrIdentity, b.path, old.Node, old.Cluster, o.Node, o.Cluster)
	}
	b.dirty = false
	b.facts.merge(old.Facts)
	maps.Copy(b.chosen, old.Chosen)
	maps.Copy(b.also, old.Also)
	maps.Copy(b.claims, old.Claims)
	b.logged, b.noted = old.Logged, old.Peers
	for id, address := range o.Peers { // an entry that is new counts, too: all may have moved since they joined
		was := old.Peers[id]
		if was == address {
			continue
		}
		b.chosen[id], b.dirty = override{Address: address, Over: b.facts.Addresses[id].Version}, true
		if was != "" {
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
		return f, fmt.Errorf("%w: it has format %d, this version reads %d: run the version that wrote it", storage.ErrVersion, f.Format, bookFormat)
	}
	return f, f.check()
}

// SetDial sets what tells the transport an address. It is called before groups are opened.
func (b *Book) SetDial(dial func(id uint64, address string)) { b.dial = dial }

// Path is the book's file.
func (b *Book) Path() string { return b.path }

// Save writes the file beside the old one and puts it in its place, if it lacks something.
func (b *Book) Save() error {
	b.file.Lock()
	defer b.file.Unlock()
	return b.write()
}

// write is Save for a caller that holds b.file.
func (b *Book) write() error {
	text, err := b.encode()
	if err != nil || text == nil || b.inMemory {
		return err
	}
	err = files.Replace(b.path, text)
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
func (b *Book) encode() ([]byte, error) {
	b.mu.Lock()
	defer b.mu.Unlock()
	if !b.dirty {
		return nil, nil
	}
	text, err := json.Marshal(bookFile{
		Format: bookFormat, Cluster: b.cluster, Node: b.node, Facts: b.facts,
		Logged: b.logged, Peers: b.noted, Chosen: b.chosen, Also: b.also, Claims: b.claims,
	})
	if err != nil {
		return nil, fmt.Errorf("encode the addresses of members: %w", err)
	}
	b.dirty = false
	return fmt.Appendf(text, "\n%08x\n", crc32.Checksum(text, castagnoli)), nil
}

// Learn takes facts of an entry that is applied, or of another node. The keeper saves them.
func (b *Book) Learn(f Facts) {
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

// Takes returns why a group must not get facts, because books have no room for them, or nil.
func (b *Book) Takes(f Facts) error {
	b.mu.Lock()
	all := b.facts.clone()
	b.mu.Unlock()
	if _, full := all.merge(f); !full {
		return nil
	}
	return invalid.Errorf("the cluster has used %d ids and removed %d members, the bounds are %d and %d: begin a new cluster with a snapshot of each group (Group.Snapshot, Restore)",
		len(all.Addresses), count(all.Removed)+count(all.Lost), maxBookNodes-1, maxBookRemoved)
}

// remember notes an address that a node had or has by another word than the book's. The caller
// holds b.mu, or has the book alone.
func (b *Book) remember(id uint64, address string) {
	known := b.also[id]
	if slices.Contains(known, address) {
		return
	}
	b.also[id] = append(known[max(0, len(known)-maxBookOthers+1):len(known):len(known)], address)
	b.dirty = true
}

// EveryAddress returns all addresses by which a node is or was known, the present one first.
func (b *Book) EveryAddress(id uint64) (all []string) {
	b.mu.Lock()
	defer b.mu.Unlock()
	for _, address := range append([]string{b.lookup(id), b.facts.Addresses[id].Address, b.peers[id], b.noted[id]}, b.also[id]...) {
		if address != "" && !slices.Contains(all, address) {
			all = append(all, address)
		}
	}
	return all
}

// Found notes that a group begins anew with this node, and goes on without others. The caller
// saves that.
func (b *Book) Found(group uint64, without []uint64) {
	b.mu.Lock()
	defer b.mu.Unlock()
	for _, id := range without {
		set(b.facts.Lost, group, id, b.node)
	}
	b.claims[group] = Denied
	b.sum, b.dirty = 0, true
}

// assert makes address this node's own: a node knows best where it is. The result is the
// fact, and whether a group has it in its log.
func (b *Book) assert(address string) (fact Located, logged bool) {
	b.mu.Lock()
	defer b.mu.Unlock()
	if fact = b.facts.Addresses[b.node]; fact.Address != address {
		fact = Located{Address: address, Version: fact.Next()}
		b.facts.Addresses[b.node] = fact
		b.sum, b.dirty = 0, true
	}
	return fact, b.logged >= fact.Version
}

// setLogged notes that a group has a version of this node's own address in its log.
func (b *Book) setLogged(version uint64) {
	b.mu.Lock()
	defer b.mu.Unlock()
	b.logged, b.dirty = version, true
}

// TrySave is save, unless that is under way. What cannot be written now, because a disk is full,
// is written later.
func (b *Book) TrySave() {
	if !b.file.TryLock() {
		return
	}
	defer b.file.Unlock()
	if err := b.write(); err != nil {
		b.warn("the addresses of members are not saved yet", "error", err)
	}
}

// warn writes a line that may come again and again.
func (b *Book) warn(text string, args ...any) {
	b.lines.Log(b.logger, slog.LevelWarn, text, text, append([]any{"node", b.node}, args...)...)
}

// tell gives the transport the address of a node. The caller holds b.mu.
func (b *Book) tell(id uint64) {
	if address := b.lookup(id); address != "" && id != b.node {
		b.dial(id, address)
	}
}

// hint has the transport dial the address that a node itself has named, and reports whether the book
// has another one. The book's is newer, and may be wrong, for example if an operator has mistyped
// the address of a node that was down. Only at the other address the node can hear that, and object.
func (b *Book) hint(id uint64, address string) bool {
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
func (b *Book) dialAgain(id uint64) {
	b.mu.Lock()
	defer b.mu.Unlock()
	b.tell(id)
}

// lookup returns the address of a node, or an empty one. The caller holds b.mu.
func (b *Book) lookup(id uint64) string {
	fact := b.facts.Addresses[id]
	if o, ok := b.chosen[id]; ok && fact.Version <= o.Over {
		return o.Address
	}
	if fact.Address != "" {
		return fact.Address
	}
	return b.peers[id]
}

// Address returns the address of a node, or an empty one.
func (b *Book) Address(id uint64) string {
	b.mu.Lock()
	defer b.mu.Unlock()
	return b.lookup(id)
}

// Fact returns the replicated address of a node, or zero.
func (b *Book) Fact(id uint64) Located {
	b.mu.Lock()
	defer b.mu.Unlock()
	return b.facts.Addresses[id]
}

// All returns the addresses of all nodes that are known.
func (b *Book) All() map[uint64]string {
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

// Removed reports whether a member was to be removed from a group, and whether the group is known
// to go on without the member.
func (b *Book) Removed(group, id uint64) (begun, gone bool) {
	b.mu.Lock()
	defer b.mu.Unlock()
	gone, begun = b.facts.Removed[group][id]
	return begun, gone
}

// Barred reports whether a group does not take a node again.
func (b *Book) Barred(group, id uint64) bool {
	b.mu.Lock()
	defer b.mu.Unlock()
	_, removed := b.facts.Removed[group][id]
	_, lost := b.facts.Lost[group][id]
	return removed || lost
}

// EveryBarred returns the ids that a group does not take again, ascending.
func (b *Book) EveryBarred(group uint64) []uint64 {
	b.mu.Lock()
	defer b.mu.Unlock()
	return members.Sorted(slices.AppendSeq(slices.Collect(maps.Keys(b.facts.Removed[group])), maps.Keys(b.facts.Lost[group])))
}

// Lost returns the node that has recovered a group without this one, or 0, and what this node
// makes of that.
func (b *Book) Lost(group uint64) (by uint64, answer Claim) {
	b.mu.Lock()
	defer b.mu.Unlock()
	return b.facts.Lost[group][b.node], b.claims[group]
}

// Answer notes what this node makes of the word that it is lost.
func (b *Book) Answer(group uint64, answer Claim) {
	b.mu.Lock()
	defer b.mu.Unlock()
	b.claims[group], b.dirty = answer, true
}

// Leaving returns the ids that a group does not take again, and of which nobody has said
// that they are gone.
func (b *Book) Leaving(group uint64) (ids []uint64) {
	b.mu.Lock()
	defer b.mu.Unlock()
	for id, gone := range b.facts.Removed[group] {
		if !gone {
			ids = append(ids, id)
		}
	}
	return ids
}

// crc64Table is for sums of books, which need not withstand an attacker.
var crc64Table = crc64.MakeTable(crc64.ECMA)

// read returns a copy of the facts, and their sum, which is not 0.
func (b *Book) read() (Facts, uint64) {
	b.mu.Lock()
	defer b.mu.Unlock()
	if b.sum == 0 {
		text, err := json.Marshal(b.facts)
		if err != nil { // numbers and texts always can be encoded
			panic(fmt.Sprintf("weft: encode facts: %v", err))
		}
		b.sum = max(1, crc64.Checksum(text, crc64Table))
		b.copy = b.facts.clone()
	}
	return b.copy, b.sum
}
