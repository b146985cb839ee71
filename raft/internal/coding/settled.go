// Copyright 2026 The Weft Authors
// SPDX-License-Identifier: Apache-2.0

package coding

import (
	"encoding/binary"
	"errors"
	"fmt"

	pb "go.etcd.io/raft/v3/raftpb"
	"google.golang.org/protobuf/proto"

	"github.com/weftraft/weft/ecraft"
	"github.com/weftraft/weft/raft/internal/extend"
)

// The Context of each answer to a vote is the voter's members in force, and the entry at which
// the voter has them, for a candidate that can never apply the changes in its log: the payload
// of an entry below is lacking here, and all others have compacted it. Such a candidate counts
// votes by members that may have left, until it learns who has come since: see package
// electorate. Upstream's library ignores the Context.

// settledVersion is the first byte.
const settledVersion = 1

// membersInForce returns the Context of an answer to a vote, nil if there is nothing to tell.
func (c *Coder) membersInForce() []byte {
	cs, index, ok := c.raft.Electorate().Settled(c.log.Applied())
	if !ok {
		return nil
	}
	term, err := c.log.Term(index)
	if err != nil {
		return nil
	}
	b := binary.AppendUvarint(binary.AppendUvarint([]byte{settledVersion}, term), index)
	if b, err = (proto.MarshalOptions{}).MarshalAppend(b, cs); err != nil {
		return nil
	}
	return b
}

var errSettled = errors.New("not members in force")

// parseMembers reads the Context.
func parseMembers(b []byte) (id ecraft.ID, cs *pb.ConfState, err error) {
	if len(b) == 0 || b[0] != settledVersion {
		return id, nil, fmt.Errorf("%w: %d bytes", errSettled, len(b))
	}
	b = b[1:]
	for _, v := range []*uint64{&id.Term, &id.Index} {
		var n int
		if *v, n = binary.Uvarint(b); n <= 0 {
			return id, nil, fmt.Errorf("%w: it ends early", errSettled)
		}
		b = b[n:]
	}
	cs = &pb.ConfState{}
	if err := proto.Unmarshal(b, cs); err != nil {
		return id, nil, fmt.Errorf("%w: %w", errSettled, err)
	}
	if len(cs.GetVoters()) == 0 {
		return id, nil, fmt.Errorf("%w: there is no voter", errSettled) // and no vote would be needed
	}
	return id, cs, nil
}

// learnMembers has this node count by the members that a voter has in force, if this node has
// the voter's entry and has not applied so far.
func (c *Coder) learnMembers(m *pb.Message) {
	if len(m.GetContext()) == 0 {
		return
	}
	id, cs, err := parseMembers(m.GetContext())
	if err != nil {
		c.emit(Event{Kind: Rejected, Peer: m.GetFrom()})
		return
	}
	c.Ask(extend.Effect{Do: extend.Learn, ID: id, Members: cs})
}
