// Copyright 2026 The Weft Authors
// SPDX-License-Identifier: Apache-2.0

package raft

import (
	"fmt"

	pb "go.etcd.io/raft/v3/raftpb"

	"github.com/weftraft/weft/ecraft"
)

// A check of a change may be about entries that this node has compacted. Others
// know their headers.

// The Context of questions and answers about headers, of the wish that a member
// releases what it can, and of the question whether it reads envelopes; see
// coded_gossip.go.
const (
	forHeaders = 'h'
	forHeader  = 'H'
	forRelease = 'R'
	forReading = 'v'
)

// maxHeaders bounds the headers in an answer.
const maxHeaders = 512

// askHeaders asks a member that has entries [from, to] of the log for the headers
// of those that are coded.
func (l *leader) askHeaders(from, to uint64) {
	c := l.coded
	if l.enc.askedHeaders == c.ticks {
		return
	}
	best, released := None, to
	for _, id := range l.enc.members {
		pr := l.members.Progress[id]
		if pr != nil && c.healthy(id) && pr.Match >= from && l.releasedBy(id) < from && l.releasedBy(id) < released {
			best, released = id, l.releasedBy(id)
		}
	}
	if best == None {
		return
	}
	l.enc.askedHeaders = c.ticks
	e := c.unitsMessage(MsgUnitsAsk, best, forHeaders)
	e.withIndex(from).withCommit(to)
	l.send(e)
}

// answerHeaders tells a leader the headers of the coded entries between the
// message's index and its commit index. The answer's commit index is how far it
// goes.
func (c *coded) answerHeaders(m *pb.Message) {
	l := c.r.log
	lo, hi := m.GetIndex(), min(m.GetCommit(), l.committed)
	if lo < l.firstIndex() || lo > hi || m.GetLogTerm() != c.r.term {
		return
	}
	ents, err := l.slice(lo, hi+1, checkPage)
	if err != nil || len(ents) == 0 {
		return
	}
	e := c.unitsMessage(MsgUnits, m.GetFrom(), forHeader).withIndex(lo)
	to := lo - 1
	for _, ent := range ents {
		if len(e.msg.Entries) == maxHeaders {
			break
		}
		env, err := c.open(ent)
		if err != nil {
			l.fail(err, "a committed entry")
			return
		}
		if env != nil && env.Kind == ecraft.Coded {
			e.msg.Entries = append(e.msg.Entries, unitsEntry(idOf(ent), ecraft.AppendHeader(nil, &env.Header)))
		}
		to = ent.GetIndex()
	}
	c.r.send(e.withCommit(to))
}

// headersArrived takes the answer.
func (l *leader) headersArrived(m *pb.Message) error {
	check := &l.enc.check
	if check.voters == nil || m.GetLogTerm() != l.term || m.GetIndex() != max(check.okTo, check.headersTo)+1 || m.GetCommit() < m.GetIndex() {
		return nil // late
	}
	if n := len(m.GetEntries()); n > maxHeaders {
		return fmt.Errorf("%w: %d headers from %x; at most %d can be", ErrMalformedMessage, n, m.GetFrom(), maxHeaders)
	}
	for _, e := range m.GetEntries() {
		hdr, _, err := ecraft.ParseHeader(e.GetData(), 0)
		if err == nil && (hdr.Kind != ecraft.Coded || e.GetIndex() < m.GetIndex() || e.GetIndex() > m.GetCommit()) {
			err = fmt.Errorf("it is of kind %s, in an answer for [%d, %d]", hdr.Kind, m.GetIndex(), m.GetCommit())
		}
		if err != nil {
			return fmt.Errorf("%w: header of %d/%d from %x: %w", ErrMalformedMessage, e.GetTerm(), e.GetIndex(), m.GetFrom(), err)
		}
		check.headers[e.GetIndex()] = &record{id: idOf(e), hdr: hdr}
	}
	check.headersTo = min(m.GetCommit(), l.log.committed)
	return nil
}

// askRelease has the voters to come that have not released entries up to index make
// snapshots, which no idle host does by itself: those who released them left too
// little, so that a check of members fails until enough of the others have.
func (l *leader) askRelease(index uint64) {
	for id := range l.enc.check.voters {
		switch a := l.coded.accounts[id]; {
		case id == l.id:
			l.coded.release(index)
		case a != nil && a.capable && a.released < index:
			l.send(l.coded.unitsMessage(MsgUnitsAsk, id, forRelease).withIndex(index))
		}
	}
}

// release asks the host for a snapshot that covers an index, once in an election
// timeout: it may make one, and release what it stands for.
func (c *coded) release(index uint64) {
	if index <= c.released() {
		c.told.released = 0 // what was said of it was lost: it is news once more
	}
	if index <= c.released() || index > c.r.log.applied || c.ticks < c.releaseTick {
		return
	}
	c.releaseTick = c.ticks + c.r.cfg.ElectionTick
	_, _ = c.r.log.snapshot() // what there is of it comes with the next report
}
