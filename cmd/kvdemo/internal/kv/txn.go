// Copyright 2026 The Weft Authors
// SPDX-License-Identifier: Apache-2.0

package kv

import (
	"cmp"
	"crypto/sha256"
	"encoding/binary"
	"errors"
	"fmt"
	"hash/crc32"
	"math"
)

// Bounds of a transaction. They are part of the data format.
const (
	// MaxTxnItems is how many comparisons and actions a transaction can have together.
	MaxTxnItems = 4096
	// MaxTxnReplyBytes bounds the values that the actions of a transaction return
	// together. An action beyond the bound has TxnReplyFull as its code.
	MaxTxnReplyBytes = 4 << 20
	// maxTxnDigestBytes bounds the bytes of values that each node reads for comparisons with a SHA-256. It is not
	// part of the data format: Command.Check counts, which does not know the values, and counts MaxInlineBytes for
	// one whose size is not known.
	maxTxnDigestBytes = 64 << 20
	// maxKeptTxnBytes bounds the results that a session keeps of one transaction.
	maxKeptTxnBytes = 4 << 10
	// MaxDeadline is the last deadline of a key, in milliseconds since 1970.
	MaxDeadline = math.MaxInt64 / int64(1e6)
)

// CompareKind says what a comparison wants. The numbers are part of the log's format.
type CompareKind byte

// The kinds of comparisons.
const (
	CompareAbsent  CompareKind = 1 // the key has no value
	ComparePresent CompareKind = 2 // the key has a value
	CompareDigest  CompareKind = 3 // the key has a value with the SHA-256
	// From level 3 on:
	CompareRevision CompareKind = 4 // the key was changed last at the revision; 0: it has no value
	CompareChanged  CompareKind = 5 // the key has a value, and was changed behind the revision

	lastCompare = CompareChanged
)

// Compare is a condition of a transaction.
type Compare struct {
	Kind   CompareKind
	Key    string
	SHA256 [sha256.Size]byte // of CompareDigest
	// Bytes of CompareDigest is how many bytes the value has that is wanted, and at least 1; 0: not known. It does not
	// travel.
	Bytes int
	// Revision of CompareRevision and CompareChanged is one of the group: see Event.
	Revision uint64
}

// byRevision reports whether a comparison has a revision.
func (k CompareKind) byRevision() bool { return k == CompareRevision || k == CompareChanged }

// CompareValue returns the condition that a key has just this value.
func CompareValue(key string, value []byte) Compare {
	return Compare{Kind: CompareDigest, Key: key, SHA256: sha256.Sum256(value), Bytes: max(1, len(value))}
}

// ActionKind says what an action does. The numbers are part of the log's format.
type ActionKind byte

// The kinds of actions.
const (
	ActGet      ActionKind = 1 // returns the value
	ActHas      ActionKind = 2 // says whether there is a value
	ActPut      ActionKind = 3 // sets the value, and the deadline or none
	ActDelete   ActionKind = 4 // removes the key
	ActAdd      ActionKind = 5 // adds Delta to a decimal number; no value counts as 0
	ActDeadline ActionKind = 6 // sets the deadline of a key that has a value; 0 removes it
	ActTTL      ActionKind = 7 // returns the deadline, 0 for none
	// From level 2 on:
	ActType         ActionKind = 8  // returns the Type as a number
	ActHash         ActionKind = 9  // returns the fields and values of a hash in turn: see ItemsOf
	ActHashSet      ActionKind = 10 // sets fields, and returns how many are new
	ActHashRemove   ActionKind = 11 // removes fields, and returns how many there were
	ActSortedAdd    ActionKind = 12 // adds members, and returns how many are new
	ActSortedRemove ActionKind = 13 // removes members, and returns how many there were
	ActSortedScore  ActionKind = 14 // returns a list of the one member with its score, or nothing
	ActSortedCount  ActionKind = 15 // returns how many members there are
	ActSortedRange  ActionKind = 16 // returns members with their scores: see ScoredOf

	lastOfLevel1 = ActTTL
	lastAct      = ActSortedRange
)

// ActionFlags modify actions; flagsOf says which. They are part of the log's format.
type ActionFlags byte

// The flags.
const (
	IfAbsent     ActionFlags = 1 // only if there is no value, field, member or deadline
	IfPresent    ActionFlags = 2 // only if there is a value, member or deadline
	KeepDeadline ActionFlags = 4 // keep the deadline that the key has
	ReturnOld    ActionFlags = 8 // return the value of before, as ActGet does
	// From level 2 on:
	IfGreater    ActionFlags = 16  // only if the score or deadline grows; no deadline is the greatest
	IfLess       ActionFlags = 32  // only if the score or deadline gets less
	CountChanged ActionFlags = 64  // count the members that were there and have another score, too
	RemoveNow    ActionFlags = 128 // remove the key instead, because the deadline has passed

	flagsOfLevel1 = IfAbsent | IfPresent | KeepDeadline | ReturnOld
)

// flagsOf returns the flags that a kind of action can have.
func flagsOf(kind ActionKind) ActionFlags {
	switch kind {
	case ActPut:
		return flagsOfLevel1
	case ActDelete:
		return ReturnOld
	case ActDeadline:
		return IfAbsent | IfPresent | IfGreater | IfLess | RemoveNow
	case ActHashSet:
		return IfAbsent
	case ActSortedAdd:
		return IfAbsent | IfPresent | IfGreater | IfLess | CountChanged
	default:
		return 0
	}
}

// clash reports whether conditions of the flags exclude each other.
func (f ActionFlags) clash() bool {
	return f&IfAbsent != 0 && f&(IfPresent|IfGreater|IfLess) != 0 || f&IfGreater != 0 && f&IfLess != 0
}

// newer reports whether an action wants level 2.
func newer(kind ActionKind, flags ActionFlags) bool {
	return kind > lastOfLevel1 || flags&^flagsOfLevel1 != 0 || flags != 0 && kind != ActPut
}

// Action is a step of a transaction.
type Action struct {
	Kind  ActionKind
	Flags ActionFlags
	Key   string
	// Value of ActPut is the value. That of ActHashSet is a list of fields and values in
	// turn, of ActHashRemove of fields, of ActSortedRemove of members (AppendItem), of
	// ActSortedAdd of members with scores (AppendScored), of ActSortedScore a member, of
	// ActSortedRange a Range.
	Value    []byte
	Delta    int64 // of ActAdd
	Deadline int64 // of ActPut, ActDeadline: milliseconds since 1970; 0 is none
}

// Writes reports whether the action can change the key.
func (a ActionKind) Writes() bool {
	switch a {
	case ActPut, ActDelete, ActAdd, ActDeadline, ActHashSet, ActHashRemove, ActSortedAdd, ActSortedRemove:
		return true
	default:
		return false
	}
}

// hasValue reports whether the action has a value that stands in the log as it is.
func (a ActionKind) hasValue() bool {
	switch a {
	case ActHashSet, ActHashRemove, ActSortedAdd, ActSortedRemove, ActSortedScore, ActSortedRange:
		return true
	default:
		return false
	}
}

// Level returns the level of a group from which on it takes the transaction.
func (t *Txn) Level() int {
	for _, c := range t.Compares {
		if c.Kind.byRevision() {
			return LevelOfRevisions
		}
	}
	for _, list := range [][]Action{t.Then, t.Else} {
		for i := range list {
			if newer(list[i].Kind, list[i].Flags) {
				return 2
			}
		}
	}
	return 1
}

// Txn is a transaction on keys of one group: if all comparisons hold, Then is done,
// and else Else, in order and all at once. A later action sees what an earlier one did.
type Txn struct {
	Compares   []Compare
	Then, Else []Action
}

// CheckActions returns nil, or ErrInvalid with what is wrong with an action but for its
// key and the value of a put.
func (t *Txn) CheckActions() error {
	for _, list := range [][]Action{t.Then, t.Else} {
		for i := range list {
			a := parsedAction{kind: list[i].Kind, value: list[i].Value}
			if err := a.checkValue(); err != nil {
				return err
			}
		}
	}
	return nil
}

// checkScores refuses the score -0, which is not part of the data format: replicas take it. It stands before 0, and is 0 in backups, which
// could not be restored, because the order would be another one.
func (t *Txn) checkScores() error {
	for _, list := range [][]Action{t.Then, t.Else} {
		for i := range list {
			if list[i].Kind != ActSortedAdd {
				continue
			}
			for members := ScoredOf(list[i].Value); members.Next(); {
				if s := members.Score(); s == 0 && math.Signbit(s) {
					return fmt.Errorf("%w member of the sorted set %q: the score -0, want 0", ErrInvalid, list[i].Key)
				}
			}
		}
	}
	return nil
}

// digestBytes returns how many bytes of values a node may have to read for comparisons with a SHA-256. One that does not
// hold is the last that is looked at.
func (t *Txn) digestBytes() (n int) {
	for _, c := range t.Compares {
		if c.Kind == CompareDigest {
			n += cmp.Or(c.Bytes, MaxInlineBytes)
		}
	}
	return n
}

// Keys yields the key of each comparison and action.
func (t *Txn) Keys(yield func(string) bool) {
	for _, c := range t.Compares {
		if !yield(c.Key) {
			return
		}
	}
	for _, list := range [][]Action{t.Then, t.Else} {
		for _, a := range list {
			if !yield(a.Key) {
				return
			}
		}
	}
}

// appendTo appends the transaction with its checksum in front: the number of
// comparisons and each of them, then both lists of actions in the same form.
func (t *Txn) appendTo(b []byte) []byte {
	at := len(b)
	b = append(b, 0, 0, 0, 0)
	b = binary.AppendUvarint(b, uint64(len(t.Compares)))
	for _, c := range t.Compares {
		b = appendBytes(append(b, byte(c.Kind)), c.Key)
		if c.Kind == CompareDigest {
			b = append(b, c.SHA256[:]...)
		}
		if c.Kind.byRevision() {
			b = binary.AppendUvarint(b, c.Revision)
		}
	}
	for _, list := range [][]Action{t.Then, t.Else} {
		b = binary.AppendUvarint(b, uint64(len(list)))
		for i := range list {
			b = list[i].appendTo(b)
		}
	}
	binary.LittleEndian.PutUint32(b[at:], crc32.Checksum(b[at+sumBytes:], castagnoli))
	return b
}

func (a *Action) appendTo(b []byte) []byte {
	b = appendBytes(append(b, byte(a.Kind), byte(a.Flags)), a.Key)
	switch a.Kind {
	case ActPut:
		b = binary.AppendUvarint(b, uint64(a.Deadline))
		b = binary.AppendUvarint(b, uint64(inlineHead+len(a.Value)))
		b = appendInline(b, []byte(a.Key), a.Value)
	case ActAdd:
		b = binary.AppendVarint(b, a.Delta)
	case ActDeadline:
		b = binary.AppendUvarint(b, uint64(a.Deadline))
	default:
		if a.Kind.hasValue() {
			b = appendBytes(b, a.Value)
		}
	}
	return b
}

// parsedTxn is a transaction taken apart. It shares the memory of its bytes.
type parsedTxn struct {
	compares []parsedCompare
	lists    [2][]parsedAction
	items    int
	level    int // that the group must have
}

type parsedCompare struct {
	kind   CompareKind
	key    []byte
	digest []byte
	// revision is that of a kind that has one.
	revision uint64
}

type parsedAction struct {
	kind     ActionKind
	flags    ActionFlags
	key      []byte
	record   []byte // of ActPut, as it is stored
	value    []byte // of those that hasValue
	delta    int64
	deadline int64
}

// txn reads a transaction.
func (in *input) txn() *parsedTxn {
	t := &parsedTxn{level: 1}
	want := in.take("checksum", sumBytes)
	if in.what != "" || crc32.Checksum(in.b, castagnoli) != binary.LittleEndian.Uint32(want) {
		in.cut("checksum")
		return t
	}
	for range in.count("comparisons", &t.items) {
		c := parsedCompare{kind: CompareKind(in.byte("kind"))}
		c.key = in.take("key", in.uvarint("key"))
		if c.kind == CompareDigest {
			c.digest = in.take("sha256", sha256.Size)
		}
		if c.kind.byRevision() {
			c.revision, t.level = in.uvarint("revision"), LevelOfRevisions
		}
		if c.kind < CompareAbsent || c.kind > lastCompare {
			in.cut("kind of comparison")
		}
		if in.what != "" {
			return t
		}
		t.compares = append(t.compares, c)
	}
	for i := range t.lists {
		for range in.count("actions", &t.items) {
			a := in.action()
			if in.what != "" {
				return t
			}
			if newer(a.kind, a.flags) {
				t.level = max(t.level, 2)
			}
			t.lists[i] = append(t.lists[i], a)
		}
	}
	return t
}

// count reads how many items follow, and adds them to the sum.
func (in *input) count(what string, sum *int) int {
	n := in.uvarint(what)
	if n > uint64(MaxTxnItems-*sum) {
		in.cut(what)
		return 0
	}
	*sum += int(n)
	return int(n)
}

func (in *input) byte(what string) byte {
	if b := in.take(what, 1); len(b) == 1 {
		return b[0]
	}
	return 0
}

func (in *input) action() parsedAction {
	a := parsedAction{kind: ActionKind(in.byte("kind")), flags: ActionFlags(in.byte("flags"))}
	a.key = in.take("key", in.uvarint("key"))
	switch a.kind {
	case ActPut:
		a.deadline = in.deadline()
		a.record = in.take("value", in.uvarint("value"))
		if len(a.record) < inlineHead {
			in.cut("checksum")
		}
	case ActAdd:
		a.delta = in.varint("delta")
	case ActDeadline:
		a.deadline = in.deadline()
	default:
		if a.kind.hasValue() {
			a.value = in.take("value", in.uvarint("value"))
		}
		if a.kind == 0 || a.kind > lastAct {
			in.cut("kind of action")
		}
	}
	return a
}

func (in *input) varint(what string) int64 {
	v, n := binary.Varint(in.b)
	if n <= 0 {
		in.cut(what)
		return 0
	}
	in.b = in.b[n:]
	return v
}

// deadline reads a deadline, 0 or more.
func (in *input) deadline() int64 {
	v := in.uvarint("deadline")
	if v > uint64(MaxDeadline) {
		in.cut("deadline")
		return 0
	}
	return int64(v)
}

// check looks at what the transaction says.
func (t *parsedTxn) check() error {
	for _, c := range t.compares {
		if err := checkKey(c.key); err != nil {
			return err
		}
	}
	for _, list := range t.lists {
		for i := range list {
			if err := list[i].check(); err != nil {
				return err
			}
		}
	}
	return nil
}

func (a *parsedAction) check() error {
	if a.flags&^flagsOf(a.kind) != 0 || a.flags.clash() {
		return fmt.Errorf("%w action %d: flags %#x, want some of %#x, and no conditions that exclude each other", ErrInvalid, a.kind, a.flags, flagsOf(a.kind))
	}
	if a.flags&KeepDeadline != 0 && a.deadline != 0 {
		return fmt.Errorf("%w put of key %q: a deadline, and to keep the one of before; want one of them", ErrInvalid, a.key)
	}
	if a.kind == ActPut {
		put := parsed{key: a.key, record: a.record, value: a.record[inlineHead:]}
		return put.checkPut()
	}
	return errors.Join(checkKey(a.key), a.checkValue())
}

// checkValue looks at the value of an action that is no put.
func (a *parsedAction) checkValue() error {
	switch a.kind {
	case ActHashSet:
		return checkList(a.value, 2)
	case ActHashRemove, ActSortedRemove:
		return checkList(a.value, 1)
	case ActSortedAdd:
		return checkScored(a.value)
	case ActSortedScore:
		if len(a.value) > MaxMemberBytes {
			return badMember(a.value)
		}
	case ActSortedRange:
		_, err := parseRange(a.value)
		return err
	default:
	}
	return nil
}

// written returns the keys that the transaction can change.
func (t *parsedTxn) written() (keys []string) {
	for _, list := range t.lists {
		for _, a := range list {
			if a.kind.Writes() {
				keys = append(keys, string(a.key))
			}
		}
	}
	return keys
}

// appendInline appends the record of a value that one command carries.
func appendInline(b, key, value []byte) []byte {
	b = append(b, kindInline)
	b = binary.LittleEndian.AppendUint32(b, sum(key, value))
	return append(b, value...)
}
