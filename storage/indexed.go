// Copyright 2026 The Weft Authors
// SPDX-License-Identifier: Apache-2.0

package storage

import (
	"errors"
	"fmt"
)

// byIndex lets s take effect by its index, whose place is in next, the following
// segment. Without a trustworthy index byIndex changes nothing and reports false: the
// frames themselves decide then.
func (r *recovery) byIndex(s, next *segment) (bool, error) {
	if r.e.opts.noIndex {
		return false, nil
	}
	found, err := r.findIndex(s, next)
	if err != nil {
		if !errors.Is(err, errNoFrame) && !errors.Is(err, errBadRecord) {
			return false, err
		}
		r.e.opts.Logf("storage: %s: all of segment %d is read, as it has no index: %v", r.e.w.dir.path, s.number, err)
		return false, nil
	}
	// The whole index is checked before any part takes effect.
	_, err = decodeIndex(found.meta, found.at, func(group uint64, body uint32, rec *record) { r.apply(group, rec, s, body) })
	if err != nil {
		return false, fmt.Errorf("storage: the index of segment %d changed while it was read: %w", s.number, err)
	}
	r.needed = max(r.needed, found.needed)
	r.found.Frames += int(found.seal - found.begin + 1)
	r.found.Bytes += found.end
	r.found.Indexed++
	r.seq = found.seal
	s.size.Store(found.end)
	return true, nil
}

// foundIndex is the index of a segment, and its place in the log.
type foundIndex struct {
	meta        []byte
	at          int64
	needed      uint64
	begin, seal uint64 // numbers of the first and the last frame
	end         int64  // of the last
}

// findIndex reads an index and checks everything known about it: the index stands at
// the place given by the next segment, only a seal follows, and the numbers of the
// frames continue from the segment before and into the next.
func (r *recovery) findIndex(s, next *segment) (f foundIndex, err error) {
	behind, m, err := r.readBegin(next)
	if err != nil {
		return f, err
	}
	if m.index == 0 {
		return f, fmt.Errorf("%w: segment %d names none", errNoFrame, next.number)
	}
	first, begin, err := r.readBegin(s)
	if err != nil {
		return f, err
	}
	sc := r.scanner(s, skimBytes)
	h, meta, err := sc.head(m.index)
	if err != nil {
		return f, err
	}
	f = foundIndex{meta: meta, at: m.index, begin: first.seq, seal: h.seq + 1, end: m.index + h.len() + headerLen}
	switch {
	case h.kind != frameIndex:
		return f, fmt.Errorf("%w: a frame of kind %d at byte %d", errNoFrame, h.kind, m.index)
	case r.seq != 0 && f.begin != r.seq+1:
		return f, fmt.Errorf("%w: the first frame has number %d, want %d", errNoFrame, f.begin, r.seq+1)
	case behind.seq != f.seal+1:
		return f, fmt.Errorf("%w: the next segment's first frame has number %d, want %d", errNoFrame, behind.seq, f.seal+1)
	}
	f.needed, err = decodeIndex(meta, m.index, func(uint64, uint32, *record) {})
	f.needed = max(f.needed, begin.first)
	return f, err
}

// onlyIndexLost reports whether the invalid frame at r.end is the index of its segment,
// by next, and then goes on behind the index, because its contents have been read from
// the frames.
func (r *recovery) onlyIndexLost(next *segment) bool {
	behind, m, err := r.readBegin(next)
	if err != nil || m.index != r.end || r.end == 0 || behind.seq != r.seq+3 {
		return false
	}
	r.seq += 2 // the index and the seal
	return true
}

// readBegin reads the first frame of a segment.
func (r *recovery) readBegin(s *segment) (frameHeader, beginMeta, error) {
	h, meta, err := r.scanner(s, beginBytes).head(0)
	if err != nil {
		return h, beginMeta{}, err
	}
	if h.kind != frameBegin {
		return h, beginMeta{}, fmt.Errorf("%w: a frame of kind %d at byte 0", errNoFrame, h.kind)
	}
	m, err := decodeBeginMeta(meta)
	if err == nil && m.id != r.e.opts.Identity {
		err = fmt.Errorf("%w: segment %d is of %v, this node is %v", ErrIdentity, s.number, m.id, r.e.opts.Identity)
	}
	return h, m, err
}
