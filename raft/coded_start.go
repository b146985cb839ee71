// Copyright 2026 The Weft Authors
// SPDX-License-Identifier: Apache-2.0

package raft

import (
	"errors"
	"fmt"

	pb "go.etcd.io/raft/v3/raftpb"

	"github.com/weftraft/weft/ecraft"
)

// A node must not take an envelope for a payload. So a node that starts looks into its
// log: at all that is not applied, which its host is about to be handed, and at a part
// of the rest, which it may send to others. A node without coding also refuses
// envelopes that a leader sends, or a client proposes. An envelope is what has the
// magic, the length of the clear prefix, and a header whose checksum is right: what a
// host proposes may begin with the magic.

// ErrCodedEntries is wrapped by the error of a node that would start on a log with
// entries of coded replication which its Config does not let it read: Config.Coding is
// nil, or its ClearPrefix is another one. The error names the first such entry, and
// what to do.
var ErrCodedEntries = errors.New("raft: the log has coded entries that this node is not set up to read")

const (
	// loadPage is how much of the log is read at a time.
	loadPage = 4 << 20
	// surveyBytes is how much is read of what is applied when a node starts.
	surveyBytes = 16 << 20
)

// examineLog looks for envelopes in the log of a node that starts.
func (r *raft) examineLog() error {
	l := r.log
	first := l.storedFirst()
	// The oldest entries first: after a time with coding the coded ones are there.
	next, err := r.survey(first, l.applied, surveyBytes)
	switch {
	case err != nil:
		return err
	case r.coded == nil:
		_, err = r.survey(l.applied+1, l.last().index, noLimit)
		return err
	}
	r.coded.spans.before = first - 1
	if next <= l.applied {
		r.coded.spans.before = l.applied // what was not read may be coded; see seek
	}
	return r.coded.load()
}

// survey looks at the entries from index lo to index last, until it has read so many
// bytes, and returns the first index that it has not looked at. A Storage that does not
// give an entry away is no reason not to start: the node asks again when it needs it.
func (r *raft) survey(lo, last uint64, bytes entryEncodingSize) (next uint64, err error) {
	for lo <= last && bytes > 0 {
		ents, err := r.log.storage.Entries(lo, last+1, uint64(min(bytes, loadPage)))
		if err != nil || len(ents) == 0 {
			return lo, nil
		}
		for _, e := range ents {
			if r.coded.isEnvelope(e) {
				r.coded.spans.add(e.GetIndex())
			} else if err := r.refuseForeign(e); err != nil {
				return lo, err
			}
		}
		bytes -= min(bytes, encodingSize(ents))
		lo += uint64(len(ents))
	}
	return lo, nil
}

// isForeign reports whether an entry is an envelope that this node is not set up to
// read, and how long its clear prefix is.
func (c *coded) isForeign(e *pb.Entry) (prefix int, foreign bool) {
	if e.GetType() != pb.EntryNormal || c.isEnvelope(e) {
		return 0, false
	}
	return ecraft.Detect(e.GetData())
}

// refuseEnvelopes returns what is wrong with entries for a node without coding: there is
// an envelope among them.
func refuseEnvelopes(ents []*pb.Entry) error {
	for _, e := range ents {
		if prefix, foreign := (*coded)(nil).isForeign(e); foreign {
			return fmt.Errorf("%w: entry %d is an envelope with a clear prefix of %d bytes, and Config.Coding is nil; "+
				"start with Coding at all members, or wait for CodingStatus.Dense at all before one goes on without", ErrMalformedMessage, e.GetIndex(), prefix)
		}
	}
	return nil
}

// refuseForeign returns why a node with such an entry in its log must not start.
func (r *raft) refuseForeign(e *pb.Entry) error {
	prefix, foreign := r.coded.isForeign(e)
	if !foreign {
		return nil
	}
	is := "Config.Coding is nil"
	if r.coded != nil {
		is = fmt.Sprintf("Config.Coding.ClearPrefix is %d", r.coded.opt.ClearPrefix)
	}
	return fmt.Errorf("%w: entry %d is an envelope with a clear prefix of %d bytes, and %s; start with Coding and ClearPrefix %d, "+
		"and go on without, or with another one, when CodingStatus.Dense is true at every member under Densify(true)",
		ErrCodedEntries, e.GetIndex(), prefix, is, prefix)
}
