// Copyright 2026 The Weft Authors
// SPDX-License-Identifier: Apache-2.0

package hosts

import (
	"encoding/binary"

	pb "go.etcd.io/raft/v3/raftpb"
	"google.golang.org/protobuf/proto"
)

// cursor is one end of a stream of appends. Both ends know the last index of the
// last message. A message whose entries follow that index is sent short: entries
// and commit index only.
type cursor struct{ index, term uint64 }

const (
	wholeAppend byte = iota
	shortAppend
)

// follows reports whether a message goes on from the cursor.
func (c *cursor) follows(m *pb.Message) bool {
	return c.term != 0 && m.GetIndex() == c.index && m.GetLogTerm() == c.term && m.GetTerm() == c.term
}

// moved puts the cursor behind a message.
func (c *cursor) moved(m *pb.Message) {
	c.index, c.term = m.GetIndex()+uint64(len(m.GetEntries())), m.GetTerm()
}

func (c *cursor) encode(m *pb.Message, reach *reach) []byte {
	defer c.moved(m)
	if !c.follows(m) {
		reach.WholeAppends++
		return append([]byte{wholeAppend}, marshal(m)...)
	}
	reach.ShortAppends++
	data := binary.AppendUvarint([]byte{shortAppend}, m.GetCommit())
	for _, e := range m.GetEntries() {
		data = binary.AppendUvarint(data, uint64(proto.Size(e)))
		var err error
		if data, err = (proto.MarshalOptions{}).MarshalAppend(data, e); err != nil {
			die("entry %d does not marshal: %w", e.GetIndex(), err)
		}
	}
	return data
}

func (c *cursor) decode(data []byte, from, to uint64) *pb.Message {
	kind, data := data[0], data[1:]
	if kind == wholeAppend {
		m := unmarshal(data)
		c.moved(m)
		return m
	}
	at := *c
	commit, n := binary.Uvarint(data)
	m := &pb.Message{Type: pb.MsgApp.Enum(), From: &from, To: &to, Term: &at.term,
		Index: &at.index, LogTerm: &at.term, Commit: &commit}
	for data = data[n:]; len(data) > 0; {
		size, n := binary.Uvarint(data)
		e := &pb.Entry{}
		if err := proto.Unmarshal(data[n:n+int(size)], e); err != nil {
			die("entry behind %d does not unmarshal: %w", at.index, err)
		}
		m.Entries = append(m.Entries, e)
		data = data[n+int(size):]
	}
	c.moved(m)
	return m
}
