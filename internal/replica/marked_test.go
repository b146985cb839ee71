// Copyright 2026 The Weft Authors
// SPDX-License-Identifier: Apache-2.0

package replica

import (
	"testing"

	"github.com/stretchr/testify/require"

	pb "go.etcd.io/raft/v3/raftpb"

	"github.com/weftraft/weft/internal/marked"
	"github.com/weftraft/weft/internal/wire"
)

// A step of the state machine ends behind the entry that has a command of the module, however many
// entries are handed over together: so replicas have states of that index, which can be compared.
func TestStepEndsBehindAnEntryWithACommandOfTheModule(t *testing.T) {
	n := newCluster(t, Weft, 1).elect(1)
	at := n.r.emitted
	m := &pb.Message{Responses: []*pb.Message{{}}}
	for i, commands := range [][]string{{"a"}, {"b", marked.Mark + "x", "c"}, {marked.Mark + "y"}, {"d"}} {
		var all [][]byte
		for _, c := range commands {
			all = append(all, []byte(c))
		}
		id := wire.CommandID{Origin: 9, Boot: 1, Sequence: uint64(i + 1)}
		m.Entries = append(m.Entries, &pb.Entry{Term: new(at.term), Index: new(at.index + 1 + uint64(i)), Data: encodeBatch(id, 1, all)})
	}
	before := len(n.r.out.Applies)
	n.r.emit(m)
	steps := n.r.out.Applies[before:]
	require.Len(t, steps, 3)
	for i, want := range []struct{ last, commands, responses int }{{2, 4, 0}, {3, 1, 0}, {4, 1, 1}} {
		require.EqualValues(t, at.index+uint64(want.last), steps[i].Batch.Index)
		require.Len(t, steps[i].Batch.Commands, want.commands)
		require.Len(t, steps[i].responses, want.responses)
		require.NotNil(t, steps[i].Batch.Host, "each step can be the last one before a crash")
	}
}
