// Copyright 2026 The Weft Authors
// SPDX-License-Identifier: Apache-2.0

// Package encoded measures entries as encoded.
package encoded

import (
	"google.golang.org/protobuf/encoding/protowire"

	pb "go.etcd.io/raft/v3/raftpb"
)

// Size returns the bytes of entries as encoded: proto.Size, several times as
// fast. Every entry is measured four times on its way through a node, and measuring was
// most of the time spent on small entries. A field costs a byte for its tag and then
// its value. A nil entry has no bytes.
func Size(ents ...*pb.Entry) (n int) {
	for _, e := range ents {
		if e == nil {
			continue // taken out by a host, in place
		}
		n += len(e.ProtoReflect().GetUnknown())
		if e.Type != nil {
			n += 1 + protowire.SizeVarint(uint64(*e.Type))
		}
		if e.Term != nil {
			n += 1 + protowire.SizeVarint(*e.Term)
		}
		if e.Index != nil {
			n += 1 + protowire.SizeVarint(*e.Index)
		}
		if e.Data != nil {
			n += 1 + protowire.SizeBytes(len(e.Data))
		}
	}
	return n
}
