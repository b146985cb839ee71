// Copyright 2026 The Weft Authors
// SPDX-License-Identifier: Apache-2.0

package extend

import (
	"errors"
	"fmt"

	pb "go.etcd.io/raft/v3/raftpb"

	"github.com/weftraft/weft/ecraft"
)

// ErrForeign says that an entry is an envelope which a node is not set up to read.
var ErrForeign = errors.New("raft: the log has coded entries that this node is not set up to read")

// ErrReserved refuses a payload that a member without coding could not tell apart from
// an envelope.
var ErrReserved = errors.New("the payload begins with the mark of coded entries, and not every member can read those")

// Off stands for the clear prefix of a node without coding.
const Off = -1

// Foreign returns an error that wraps ErrForeign, and says what to do, if there is an
// envelope among entries that a node with this clear prefix cannot read. An envelope has
// the magic, the length of the clear prefix, and a header with the right checksum,
// because a host's own proposal may begin with the magic.
func Foreign(ents []*pb.Entry, clearPrefix int) error {
	for _, e := range ents {
		if e.GetType() != pb.EntryNormal || clearPrefix != Off && ecraft.IsEnvelope(e.GetData(), clearPrefix) {
			continue
		}
		prefix, foreign := ecraft.Detect(e.GetData())
		if !foreign {
			continue
		}
		is := "Config.Coding is nil"
		if clearPrefix != Off {
			is = fmt.Sprintf("Config.Coding.ClearPrefix is %d", clearPrefix)
		}
		return fmt.Errorf("%w: entry %d is an envelope with a clear prefix of %d bytes, and %s; start with Coding and ClearPrefix %d, "+
			"and go on without, or with another one, when CodingStatus.Dense is true at every member under Densify(true)",
			ErrForeign, e.GetIndex(), prefix, is, prefix)
	}
	return nil
}
