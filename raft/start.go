// Copyright 2026 The Weft Authors
// SPDX-License-Identifier: Apache-2.0

package raft

import (
	"errors"

	pb "go.etcd.io/raft/v3/raftpb"
)

const (
	// loadPage is how much of the log is read at a time.
	loadPage = 4 << 20
	// surveyBytes bounds the applied entries read when a node starts.
	surveyBytes = 16 << 20
)

// extend begins the configured extension, and shows the extension the log, because a
// node must not take an envelope for a payload. The extension sees all unapplied
// entries, which the host will be handed, and a part of the applied ones, which this
// node may send to others: the oldest, because coded entries from an earlier time with
// coding are there.
func (r *raft) extend() error {
	r.extension = newExtension(r)
	if err := r.lease(); err != nil {
		return err
	}
	l := r.log
	first := l.storedFirst()
	next, _, err := r.show(first, l.applied, surveyBytes, r.extension.Survey)
	if err != nil {
		return err
	}
	if next > l.applied {
		r.extension.Surveyed(first - 1)
	}
	next, unread, err := r.show(l.applied+1, l.last().Index, noLimit, func(ents []*pb.Entry) error {
		r.members.Appended(ents)
		return r.extension.Load(ents)
	})
	switch {
	case errors.Is(err, ErrCodedEntries):
		return err
	case err == nil && next <= l.last().Index && r.members.Tracks():
		err = errors.Join(ErrUnavailable, unread)
	}
	if err != nil {
		l.fail(err, "entries from %d on, to look for coded ones", next)
	}
	if r.members.Torn() {
		r.votersChanged()
	}
	return l.err
}

// show shows an extension the entries from index lo to index last, until so many bytes
// were read, and returns the first index not shown. An unreadable entry, for the reason
// unread, does not keep the node from starting: the node asks again when it needs the entry.
func (r *raft) show(lo, last uint64, bytes entryEncodingSize, to func(ents []*pb.Entry) error) (next uint64, unread, err error) {
	for lo <= last && bytes > 0 {
		ents, err := r.log.storage.Entries(lo, last+1, uint64(min(bytes, loadPage)))
		if err != nil || len(ents) == 0 {
			return lo, err, nil
		}
		if err := to(ents); err != nil {
			return lo, nil, err
		}
		bytes -= min(bytes, encodingSize(ents))
		lo += uint64(len(ents))
	}
	return lo, nil, nil
}
