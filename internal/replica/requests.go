// Copyright 2026 The Weft Authors
// SPDX-License-Identifier: Apache-2.0

package replica

import (
	"fmt"

	pb "go.etcd.io/raft/v3/raftpb"

	"github.com/weftraft/weft/internal/members"
	"github.com/weftraft/weft/raft"
)

// Propose takes a command from a user. It ends with the state machine's result.
// The command must not be changed any more.
func (r *Replica) Propose(call Call, command []byte, deadline Deadline) {
	r.outbox.propose(call, command, deadline)
}

// ProposeConfChange takes a change of the member set from a user. It ends with
// the new configuration. The context of cc is kept.
//
// The leader makes no change after which the group may not go on
// ([ErrUnsafeChange]), nor one about a node that is no member ([ErrNotMember]).
func (r *Replica) ProposeConfChange(call Call, cc *pb.ConfChangeV2, deadline Deadline) {
	r.outbox.proposeConfChange(call, cc, deadline, false)
}

// ForceConfChange is ProposeConfChange without the question whether the group
// will go on.
func (r *Replica) ForceConfChange(call Call, cc *pb.ConfChangeV2, deadline Deadline) {
	r.outbox.proposeConfChange(call, cc, deadline, true)
}

// TransferLeader asks for a voter to become leader. The call ends when the voter leads. A
// failed transfer leaves the old leader; so a call that timed out may have moved leadership
// or not.
func (r *Replica) TransferLeader(call Call, to uint64, deadline Deadline) {
	r.moves.ask(call, to, deadline)
}

func (r *Replica) leader() (id, term uint64) { return r.state.Lead, r.state.Term }
func (r *Replica) callEnded(d Done)          { r.out.Done = append(r.out.Done, d) }

func (r *Replica) unable() error {
	if r.err != nil {
		return fmt.Errorf("%w: %w", ErrFailed, r.err)
	}
	return r.cannotWrite()
}

// timeout is the cause for a call whose deadline passed now.
func (r *Replica) timeout() error {
	err := ErrTimeout
	if r.state.Lead == raft.None {
		why := "this node may be cut off from a majority, or an election is under way"
		if !members.Has(r.host.conf, r.cfg.ID) {
			why = "this node is no member of the group, as far as it knows: add it at a member"
		}
		err = fmt.Errorf("%w, and %w: %s", ErrTimeout, ErrNoLeader, why)
	}
	if len(r.unaddressed) > 0 {
		err = fmt.Errorf("%w; the transport has no address for members %v", err, r.unaddressed)
	}
	if barring := r.settings.barring(); barring != nil {
		err = fmt.Errorf("%w; %w", err, barring)
	}
	if stalled := r.cannotWrite(); stalled != nil {
		err = fmt.Errorf("%w; %w", err, stalled)
	}
	return err
}

// StopCalls ends all calls, as the driver is about to stop.
func (r *Replica) StopCalls() {
	cause := ErrStopped
	if r.err != nil {
		cause = fmt.Errorf("%w: %w", ErrFailed, r.err)
	}
	r.endAll(cause)
	r.outbox.tidy()
	r.intake.wrote(0, true)
}
