// Copyright 2026 The Weft Authors
// SPDX-License-Identifier: Apache-2.0

package raft

import (
	pb "go.etcd.io/raft/v3/raftpb"

	"github.com/weftraft/weft/raft/internal/extend"
)

// settle ends each call of the host: the effects of extensions are performed, and the
// winner of an election leads if it may.
func (r *raft) settle() {
	r.perform()
	if rc, ok := r.role.(*recoverer); ok {
		rc.proceed()
		r.perform()
	}
	r.checkInvariants()
}

// perform carries out the effects of extensions, until no new ones come.
func (r *raft) perform() {
	for effects := r.extension.Asked(); len(effects) > 0; effects = r.extension.Asked() {
		for _, e := range effects {
			if r.log.err != nil {
				return // answers of a failed storage are made up
			}
			r.do(e)
		}
	}
}

func (r *raft) do(e extend.Effect) {
	switch e.Do {
	case extend.Send:
		r.outbox = append(r.outbox, e.Msg)
	case extend.Vouch:
		r.vouching = append(r.vouching, e.Msg)
	case extend.Report:
		if r.lead != None {
			r.vouch(r.message(pb.MsgAppResp, r.lead).withIndex(e.ID.Index))
		}
	case extend.Commit:
		if id := e.ID; id.Index > r.log.committed && r.log.holds(id) {
			r.cfg.Logger.Infof("raft: node %x learns from another that its log is committed up to %v", r.id, id)
			r.log.commitTo(id.Index)
		}
	case extend.Learn:
		r.learnMembers(e.ID, e.Members)
	case extend.Answer:
		r.answerRead(e.Msg, e.ID.Index)
	case extend.Redirect:
		_ = r.role.step(e.Msg) // the host asks again for a lost read
	case extend.Bear:
		r.quietTicks = 0
	case extend.Fail:
		r.log.fail(e.Err, "an entry of the log")
	default:
		if l := r.leading(); l != nil {
			l.do(e)
		}
	}
}

// do carries out a leader's effect. Effects of an earlier term are void.
func (l *leader) do(e extend.Effect) {
	pr := l.members.Progress(e.To)
	switch {
	case e.Do == extend.Append:
		if e.Ent.GetTerm() == l.term {
			e.Ent.Index = new(l.log.last().Index + 1)
			l.append(e.Ent)
		}
	case e.Do == extend.Spread:
		l.broadcastAppend()
	case e.Do == extend.Count:
		if l.advanceCommit() {
			l.releaseEarlyReads()
			l.broadcastAppend()
		}
	case e.Do == extend.Retry:
		l.retryHeld()
	case e.Do == extend.Refuse:
		l.refuseHeld()
	case e.Do == extend.Continue:
		if pr := l.members.Progress(l.transferee); pr != nil {
			l.continueTransfer(l.transferee, pr)
		}
	case pr == nil:
	case e.Do == extend.Resend, e.Do == extend.Probe:
		l.sendAppend(e.To, pr, e.Do == extend.Probe)
	case e.Do == extend.Beat:
		l.send(l.message(pb.MsgHeartbeat, e.To).withCommit(min(pr.Match, l.log.committed)))
	case e.Do == extend.Snapshot:
		l.sendSnapshot(e.To, pr)
	case e.Do == extend.HandOver:
		l.handTo(pr, e.To, true)
	}
}
