// Copyright 2026 The Weft Authors
// SPDX-License-Identifier: Apache-2.0

package coding

import (
	"fmt"

	pb "go.etcd.io/raft/v3/raftpb"

	"github.com/weftraft/weft/ecraft"
)

// A check of a change may concern entries compacted by this node. Other members
// have the headers.

// The Context of questions and answers about headers, of the wish that a member
// releases entries, and of the question whether a node reads envelopes; see
// exchange.go.
const (
	forHeaderAsk    = 'h'
	forHeaderAnswer = 'H'
	forRelease      = 'R'
	forReading      = 'v'
)

// maxHeaders bounds the headers in an answer.
const maxHeaders = 512

// askHeaders asks a member with entries [from, to] of the log for the headers of the
// coded entries.
func (l *leading) askHeaders(from, to uint64) {
	c := l.Coder
	if l.askedHeaders == c.ticks {
		return
	}
	best, released := uint64(0), to
	for _, id := range l.members {
		if c.healthy(id) && l.match(id) >= from && l.releasedBy(id) < from && l.releasedBy(id) < released {
			best, released = id, l.releasedBy(id)
		}
	}
	if best == 0 {
		return
	}
	l.askedHeaders = c.ticks
	m := c.unitsMessage(MsgUnitsAsk, best, forHeaderAsk)
	m.Index, m.Commit = &from, &to
	l.send(m)
}

// answerHeaders tells a leader the headers of the coded entries between the message's
// index and its commit index. The answer covers entries up to its commit index.
func (c *Coder) answerHeaders(m *pb.Message) {
	lo, hi := m.GetIndex(), min(m.GetCommit(), c.log.Committed())
	if lo < c.log.First() || lo > hi || m.GetLogTerm() != c.raft.Term() {
		return
	}
	ents, err := c.log.Slice(lo, hi+1, checkPage)
	if err != nil || len(ents) == 0 {
		return
	}
	e := c.unitsMessage(MsgUnits, m.GetFrom(), forHeaderAnswer)
	to := lo - 1
	for _, ent := range ents {
		if len(e.Entries) == maxHeaders {
			break
		}
		env, err := c.open(ent)
		if err != nil {
			c.fail(err, "a committed entry")
			return
		}
		if env != nil && env.Kind == ecraft.Coded {
			e.Entries = append(e.Entries, named(idOf(ent), ecraft.AppendHeader(nil, &env.Header)))
		}
		to = ent.GetIndex()
	}
	e.Index, e.Commit = &lo, &to
	c.send(e)
}

// headersArrived takes the answer.
func (l *leading) headersArrived(m *pb.Message) error {
	check := &l.check
	if check.voters == nil || m.GetLogTerm() != l.raft.Term() || m.GetIndex() != max(check.okTo, check.headersTo)+1 || m.GetCommit() < m.GetIndex() {
		return nil // late
	}
	if n := len(m.GetEntries()); n > maxHeaders {
		return fmt.Errorf("%d headers from %x; at most %d can be", n, m.GetFrom(), maxHeaders)
	}
	for _, e := range m.GetEntries() {
		hdr, _, err := ecraft.ParseHeader(e.GetData(), 0)
		if err == nil && (hdr.Kind != ecraft.Coded || e.GetIndex() < m.GetIndex() || e.GetIndex() > m.GetCommit()) {
			err = fmt.Errorf("it is of kind %s, in an answer for [%d, %d]", hdr.Kind, m.GetIndex(), m.GetCommit())
		}
		if err != nil {
			return fmt.Errorf("header of %d/%d from %x: %w", e.GetTerm(), e.GetIndex(), m.GetFrom(), err)
		}
		check.headers[e.GetIndex()] = &record{id: idOf(e), hdr: hdr}
	}
	check.headersTo = min(m.GetCommit(), l.log.Committed())
	return nil
}

// askRelease has the voters to come that have not released entries up to index make
// snapshots, because no idle host makes any by itself. The members that released the
// entries left too few units, so a check of members fails until enough of the others
// have released them.
func (l *leading) askRelease(index uint64) {
	for id := range l.check.voters {
		switch a := l.accounts[id]; {
		case id == l.id:
			l.askForSnapshot(index)
		case a != nil && a.capable && a.released < index:
			m := l.unitsMessage(MsgUnitsAsk, id, forRelease)
			m.Index = &index
			l.send(m)
		}
	}
}

// askForSnapshot asks the host for a snapshot that covers an index, once in an election
// timeout: the host may make a snapshot, and so release entries.
func (c *Coder) askForSnapshot(index uint64) {
	if index <= c.released() {
		c.told.released = 0 // the report was lost: repeat the news
	}
	if index <= c.released() || index > c.log.Applied() || c.ticks < c.releaseTick {
		return
	}
	c.releaseTick = c.ticks + c.cfg.ElectionTick
	_, _ = c.log.Snapshot() // the next report says how far
}
