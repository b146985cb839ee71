// Copyright 2026 The Weft Authors
// SPDX-License-Identifier: Apache-2.0

package copies

import (
	"context"
	"errors"
	"fmt"
	"net"
	"slices"
	"strings"
	"sync"
	"time"

	pb "go.etcd.io/raft/v3/raftpb"

	"github.com/weftraft/weft/internal/address"
	"github.com/weftraft/weft/internal/invalid"
	"github.com/weftraft/weft/internal/members"
	"github.com/weftraft/weft/rawnode"
)

// Asked is a question whether a member is alive: see package weft.
type Asked struct {
	ID      uint64
	Address string
	Err     error
}

// checkLost returns an error unless exactly the members that are named are not there. Who was a
// member when the last entry known to be committed was written is one, too: of two members, one may
// have the removal of the other in its log, and not lead without the other.
func (r *recovery) checkLost(ctx context.Context, conf, committed *pb.ConfState) error {
	all := members.Sorted(slices.Concat(members.IDs(conf), members.IDs(committed)))
	if !members.Votes(conf, r.ID) {
		return fmt.Errorf("%w: this node (%d) does not vote, the members are %v: recover a voter", rawnode.ErrNotMember, r.ID, all)
	}
	others := slices.DeleteFunc(slices.Clone(all), func(id uint64) bool { return id == r.ID })
	switch alone := len(members.IDs(conf)) == 1; {
	case len(others) == 0:
		return fmt.Errorf("%w: this node (%d) is the only member: open it", ErrMajority, r.ID)
	case alone && len(r.lost) == 0:
		return fmt.Errorf("%w: this node (%d) is the only member, if the removal of %v is committed, which its log does not show: open the node, and if it finds no leader, name %v as lost", ErrMajority, r.ID, others, others)
	}
	if !slices.Equal(others, r.lost) {
		return invalid.Errorf("lost is %v, and the members beside this node (%d) are %v, with those whose removal may not be committed: name all of them, if all of them are lost", r.lost, r.ID, others)
	}
	return r.ask(ctx, committed, others)
}

// ask returns an error if a member is there, or may be. A member is asked for at every address that
// this node knows: the newest one may be a mistake, or older than the last move of the member.
func (r *recovery) ask(ctx context.Context, conf *pb.ConfState, others []uint64) error {
	if err := r.askAll(ctx, others); err != nil {
		return err
	}
	var there []uint64
	var where []string
	for _, a := range r.asked {
		if a.Err == nil {
			there = append(there, a.ID)
			where = append(where, fmt.Sprintf("%s (node %d)", a.Address, a.ID))
		}
	}
	switch {
	case len(there) == 0:
		return nil
	case conf != nil && hasMajority(conf, append(there, r.ID)):
		return fmt.Errorf("%w: something answers at %s, with this node (%d) a majority of the voters %v: open this node", ErrMajority, strings.Join(where, ", "), r.ID, conf.GetVoters())
	}
	return fmt.Errorf("%w: something answers at %s, named lost: stop these nodes, compare them with this one by Inspect, and recover the one whose log goes furthest; "+
		"if another service has the address now, stop it meanwhile", ErrMajority, strings.Join(where, ", "))
}

// hasMajority reports whether nodes are a majority of each half of a configuration.
func hasMajority(conf *pb.ConfState, ids []uint64) bool {
	for _, half := range [][]uint64{conf.GetVoters(), conf.GetVotersOutgoing()} {
		n := 0
		for _, id := range half {
			if slices.Contains(ids, id) {
				n++
			}
		}
		if len(half) > 0 && n <= len(half)/2 {
			return false
		}
	}
	return true
}

// probeTimeout is how long a member has to accept a connection.
const probeTimeout = 3 * time.Second

// askAll asks for members at all their addresses. A process that is stopped accepts connections,
// too, as its system does.
func (r *recovery) askAll(ctx context.Context, ids []uint64) error {
	var errs []error
	r.asked = nil
	for _, id := range ids {
		all := r.book.EveryAddress(id)
		if len(all) == 0 {
			errs = append(errs, fmt.Errorf("%w: no address of node %d is known: name it in Options.Peers, so that it can be asked", address.Err, id))
		}
		for _, address := range all {
			r.asked = append(r.asked, Asked{ID: id, Address: address})
		}
	}
	if err := errors.Join(errs...); err != nil {
		return err
	}
	var all sync.WaitGroup
	for i := range r.asked {
		all.Go(func() {
			dialer := net.Dialer{Timeout: probeTimeout}
			conn, err := dialer.DialContext(ctx, "tcp", r.asked[i].Address)
			if r.asked[i].Err = err; err == nil {
				_ = conn.Close() // it was there
			}
		})
	}
	all.Wait()
	return ctx.Err()
}
