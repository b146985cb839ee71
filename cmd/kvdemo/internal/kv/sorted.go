// Copyright 2026 The Weft Authors
// SPDX-License-Identifier: Apache-2.0

package kv

import (
	"bytes"
	"encoding/binary"
	"fmt"
	"hash/crc32"
	"math"
)

// A sorted set has a record under its key, the head, and two rows for each member: one by
// the member, with the score, and one by the score, which is an index. The rows stand in
// sections of their own under the set's number, not its key, so no list of keys meets
// them, and a set that is removed and made again has nothing to do with the rows of
// before. A set without members is no key.

// Bounds of sorted sets. They are part of the data format.
const (
	MaxMemberBytes = MaxKeyBytes
	// MaxSortedBytes bounds a set: its members, and for each 8 bytes of score and 1 or 2
	// of length.
	MaxSortedBytes = MaxValueBytes

	numberBytes = 8 + 4
	scoreBytes  = 8
	headBytes   = inlineHead + numberBytes + 8 + 8 + 8
	// memberBytes is what stands under a member: score and checksum.
	memberBytes = scoreBytes + sumBytes
)

// setNumber names the rows of a set: the position of the command that made it, and which
// action of that.
type setNumber [numberBytes]byte

func newSetNumber(position uint64, action int) (n setNumber) {
	binary.BigEndian.PutUint64(n[:], position)
	binary.BigEndian.PutUint32(n[8:], uint32(action))
	return n
}

// head is what stands under the key of a set.
type head struct {
	number  setNumber
	members uint64
	bytes   uint64 // of all members, as MaxSortedBytes counts them
	// changed is the position of the last change, so that a comparison of heads notices
	// every change.
	changed uint64
}

// record returns the record of the head.
func (h *head) record(key []byte) []byte {
	b := make([]byte, inlineHead, headBytes)
	b = append(b, h.number[:]...)
	b = binary.BigEndian.AppendUint64(b, h.members)
	b = binary.BigEndian.AppendUint64(b, h.bytes)
	b = binary.BigEndian.AppendUint64(b, h.changed)
	return seal(kindSorted, key, b)
}

// openHead reads what record made, behind kind and checksum.
func openHead(key, b []byte) (*head, error) {
	if len(b) != headBytes-inlineHead {
		return nil, fmt.Errorf("%w: the head of the sorted set %q has %d bytes, want %d", ErrDamaged, key, len(b), headBytes-inlineHead)
	}
	h := &head{number: setNumber(b)}
	h.members, h.bytes, h.changed = binary.BigEndian.Uint64(b[numberBytes:]), binary.BigEndian.Uint64(b[numberBytes+8:]), binary.BigEndian.Uint64(b[numberBytes+16:])
	if h.members == 0 || h.bytes > MaxSortedBytes || h.bytes/(scoreBytes+1) < h.members {
		return nil, fmt.Errorf("%w: the sorted set %q has %d members of %d bytes", ErrDamaged, key, h.members, h.bytes)
	}
	return h, nil
}

// take counts a member.
func (h *head) take(member []byte) {
	h.members++
	h.bytes += uint64(scored(member))
}

// drop counts a member that is gone.
func (h *head) drop(member []byte) {
	h.members--
	h.bytes -= uint64(scored(member))
}

// scored is how many bytes a member takes in a list of members with scores.
func scored(member []byte) int { return scoreBytes + listed(member) }

// ordered returns bits whose order is that of scores. No score is no number.
func ordered(score float64) uint64 {
	b := math.Float64bits(score)
	if b>>63 != 0 {
		return ^b
	}
	return b | 1<<63
}

// disordered is the inverse of ordered.
func disordered(b uint64) float64 {
	if b>>63 != 0 {
		return math.Float64frombits(b &^ (1 << 63))
	}
	return math.Float64frombits(^b)
}

// memberName returns the name of a member's row in secMember.
func (n setNumber) memberName(member []byte) []byte {
	return append(append(make([]byte, 0, numberBytes+len(member)), n[:]...), member...)
}

// scoreName returns the name of a member's row in secScore.
func (n setNumber) scoreName(score float64, member []byte) []byte {
	b := append(make([]byte, 0, numberBytes+scoreBytes+len(member)), n[:]...)
	return append(binary.BigEndian.AppendUint64(b, ordered(score)), member...)
}

// memberRow returns what stands under a member: the score, and the checksum of name and
// score.
func memberRow(name []byte, score float64) []byte {
	b := binary.BigEndian.AppendUint64(make([]byte, 0, memberBytes), ordered(score))
	return binary.LittleEndian.AppendUint32(b, sum(name, b))
}

// openMember reads what memberRow made.
func openMember(name, b []byte) (float64, error) {
	if len(b) != memberBytes || len(name) < numberBytes || len(name) > numberBytes+MaxMemberBytes {
		return 0, fmt.Errorf("%w: the member %x of a sorted set has a row of %d bytes", ErrDamaged, name, len(b))
	}
	if want, got := binary.LittleEndian.Uint32(b[scoreBytes:]), sum(name, b[:scoreBytes]); want != got {
		return 0, fmt.Errorf("%w: the member %x of a sorted set has checksum %08x, want %08x", ErrDamaged, name, got, want)
	}
	score := disordered(binary.BigEndian.Uint64(b))
	if math.IsNaN(score) {
		return 0, fmt.Errorf("%w: the member %x of a sorted set has a score that is no number", ErrDamaged, name)
	}
	return score, nil
}

// scoreRow returns what stands under a name in secScore: the checksum of the name.
func scoreRow(name []byte) []byte {
	return binary.LittleEndian.AppendUint32(nil, crc32.Checksum(name, castagnoli))
}

// openScore reads a row of secScore.
func openScore(name, b []byte) (score float64, member []byte, err error) {
	if len(name) < numberBytes+scoreBytes || !bytes.Equal(b, scoreRow(name)) {
		return 0, nil, fmt.Errorf("%w: a score of a sorted set has the key %x and the row %x", ErrDamaged, name, b[:min(len(b), 16)])
	}
	return disordered(binary.BigEndian.Uint64(name[numberBytes:])), name[numberBytes+scoreBytes:], nil
}

// AppendScored appends a member with its score: the form of the lists of ActSortedAdd and
// of what ActSortedRange returns.
func AppendScored(b []byte, score float64, member []byte) []byte {
	return appendBytes(binary.BigEndian.AppendUint64(b, ordered(score+0)), member) // -0 is 0
}

// Scored are members with scores, one after the other. They share the memory of the list.
type Scored struct {
	in     input
	member []byte
	score  float64
}

// ScoredOf returns the members of a list that AppendScored made.
func ScoredOf(b []byte) *Scored { return &Scored{in: input{b: b}} }

// Next moves to the next member, if there is one.
func (s *Scored) Next() bool {
	if len(s.in.b) == 0 {
		return false
	}
	if b := s.in.take("score", scoreBytes); b != nil {
		s.score = disordered(binary.BigEndian.Uint64(b))
	}
	s.member = s.in.take("member", s.in.uvarint("member"))
	if s.in.what == "" && math.IsNaN(s.score) {
		s.in.cut("score")
	}
	return s.in.what == ""
}

// Member returns the present member, which is not to be changed.
func (s *Scored) Member() []byte { return s.member }

// Score returns the score of the present member.
func (s *Scored) Score() float64 { return s.score }

// Err says whether the list was cut off.
func (s *Scored) Err() error {
	if s.in.what == "" {
		return nil
	}
	return fmt.Errorf("%w list of members: it is cut off at %q", ErrInvalid, s.in.what)
}

// checkScored looks at a list of at least one member.
func checkScored(b []byte) error {
	list, n := ScoredOf(b), 0
	for list.Next() {
		if len(list.Member()) > MaxMemberBytes {
			return badMember(list.Member())
		}
		n++
	}
	if err := list.Err(); err != nil {
		return err
	}
	if n == 0 {
		return fmt.Errorf("%w list of members: it is empty, want 1 or more", ErrInvalid)
	}
	return nil
}

func badMember(member []byte) error {
	return fmt.Errorf("%w member of a sorted set: %d bytes, want at most %d", ErrInvalid, len(member), MaxMemberBytes)
}

// Range selects members of a sorted set by their scores.
type Range struct {
	Min, Max         float64
	MinOpen, MaxOpen bool  // the bound itself is left out
	Offset           int64 // so many members from the first on are left out
	Count            int64 // at most so many; less than 0: all
}

const (
	rangeMinOpen byte = 1 << iota
	rangeMaxOpen
)

// Encode returns the range as the Value of an ActSortedRange.
func (r Range) Encode() []byte {
	flags := byte(0)
	if r.MinOpen {
		flags |= rangeMinOpen
	}
	if r.MaxOpen {
		flags |= rangeMaxOpen
	}
	b := binary.BigEndian.AppendUint64([]byte{flags}, ordered(r.Min+0))
	b = binary.BigEndian.AppendUint64(b, ordered(r.Max+0))
	b = binary.AppendVarint(b, r.Offset)
	return binary.AppendVarint(b, r.Count)
}

// parseRange is the inverse of Encode.
func parseRange(b []byte) (r Range, err error) {
	in := input{b: b}
	flags := in.byte("flags")
	r.MinOpen, r.MaxOpen = flags&rangeMinOpen != 0, flags&rangeMaxOpen != 0
	if bounds := in.take("bounds", 2*scoreBytes); bounds != nil {
		r.Min, r.Max = disordered(binary.BigEndian.Uint64(bounds)), disordered(binary.BigEndian.Uint64(bounds[scoreBytes:]))
	}
	r.Offset, r.Count = in.varint("offset"), in.varint("count")
	if in.what != "" || len(in.b) > 0 || flags&^(rangeMinOpen|rangeMaxOpen) != 0 || math.IsNaN(r.Min) || math.IsNaN(r.Max) || r.Offset < 0 {
		return r, fmt.Errorf("%w range of a sorted set: %x", ErrInvalid, b[:min(len(b), 64)])
	}
	return r, nil
}

// bounds returns the names in secScore between which the range is.
func (r Range) bounds(n setNumber) (lower, upper []byte) {
	lower, upper = n.scoreName(r.Min, nil), n.scoreName(r.Max, nil)
	if r.MinOpen {
		lower = prefixEnd(lower)
	}
	if !r.MaxOpen {
		upper = prefixEnd(upper)
	}
	if bytes.Compare(lower, upper) > 0 {
		lower = upper
	}
	return lower, upper
}

// holds reports whether a score is in the range, as bounds says.
func (r Range) holds(score float64) bool {
	at, low, high := ordered(score), ordered(r.Min), ordered(r.Max)
	return (at > low || at == low && !r.MinOpen) && (at < high || at == high && !r.MaxOpen)
}

// seal completes a record of a kind other than kindInline and kindLarge, whose head is
// still empty. The checksum covers the kind.
func seal(kind byte, key, b []byte) []byte {
	b[0] = kind
	binary.LittleEndian.PutUint32(b[1:], typedSum(kind, key, b[inlineHead:]))
	return b
}

func typedSum(kind byte, key, value []byte) uint32 {
	return crc32.Update(sum(key, []byte{kind}), castagnoli, value)
}
