// Copyright 2026 The Weft Authors
// SPDX-License-Identifier: Apache-2.0

package kv

import (
	"crypto/sha256"
	"errors"
	"fmt"
	"io"

	"github.com/cockroachdb/pebble/v2"
)

// setMembers reads all members of a sorted set, by their scores.
type setMembers struct {
	head head // what has not been read of it
	it   *pebble.Iterator
	more bool
	buf  []byte
}

func (v *view) members(h *head) (*setMembers, error) {
	from := v.space.key(secScore, h.number[:])
	it, err := v.now.iter(from, prefixEnd(from))
	if err != nil {
		return nil, err
	}
	return &setMembers{head: *h, it: it, more: it.First()}, nil
}

// membersPage is about how many bytes next returns.
const membersPage = 256 << 10

// next returns the next members in the form of AppendScored, valid until the next call. The end is
// io.EOF if the set had as many members and bytes as the head counts, and otherwise ErrDamaged.
func (m *setMembers) next() ([]byte, error) {
	m.buf = m.buf[:0]
	for ; m.more && len(m.buf) < membersPage; m.more = m.it.Next() {
		score, member, err := scoreAt(m.it)
		if err != nil {
			return nil, err
		}
		if m.head.members == 0 || m.head.bytes < uint64(scored(member)) {
			return nil, fmt.Errorf("%w: the sorted set of number %x has more members than its head says", ErrDamaged, m.head.number)
		}
		m.head.drop(member)
		m.buf = AppendScored(m.buf, score, member)
	}
	if len(m.buf) > 0 {
		return m.buf, nil
	}
	if err := m.it.Error(); err != nil {
		return nil, damage(err)
	}
	if m.head.members != 0 || m.head.bytes != 0 {
		return nil, fmt.Errorf("%w: the sorted set of number %x lacks %d members of %d bytes", ErrDamaged, m.head.number, m.head.members, m.head.bytes)
	}
	return nil, io.EOF
}

func (m *setMembers) close() error { return m.it.Close() }

// sortedDigest reads a sorted set and returns the digest of its members.
func (v *view) sortedDigest(h *head) ([]byte, error) {
	m, err := v.members(h)
	if err != nil {
		return nil, err
	}
	hash := sha256.New()
	_, _ = hash.Write([]byte{kindSorted}) // a hash.Hash never fails
	for {
		b, err := m.next()
		if errors.Is(err, io.EOF) {
			return hash.Sum(nil), m.close()
		}
		if err != nil {
			return nil, errors.Join(err, m.close())
		}
		_, _ = hash.Write(b)
	}
}
