// Copyright 2026 The Weft Authors
// SPDX-License-Identifier: Apache-2.0

package weft

import (
	"context"
	"errors"
	"fmt"
	"io"
	"path/filepath"
	"time"

	"github.com/weftraft/weft/internal/copies"
	"github.com/weftraft/weft/internal/files"
	"github.com/weftraft/weft/internal/front"
	"github.com/weftraft/weft/internal/invalid"
	"github.com/weftraft/weft/rawnode"
	"github.com/weftraft/weft/rawnode/state"
	"github.com/weftraft/weft/storage"
)

// SnapshotInfo describes a snapshot of [Group.Snapshot].
type SnapshotInfo struct {
	// Format is the version of the file's format.
	Format int `json:"weft_snapshot"`
	// Cluster and Group are where the snapshot was made, and Index is the place in
	// the log: the state has all entries up to Index, and no other.
	Cluster uint64 `json:"cluster"`
	Group   uint64 `json:"group"`
	Index   uint64 `json:"index"`
	// ID is different for each snapshot, in hexadecimal digits.
	ID string `json:"id"`
}

// Snapshot writes the state of the group, as of one place in the log, while commands go
// on. The state has everything that was acknowledged before the call. What is written
// can be checked and restored by [Restore]. Any member can be asked. After an error, which is a
// [CallError] that wraps [ErrRefused], w has nothing, or a part that Restore refuses. If ctx has no
// deadline, the wait for the state is bounded as in [Group.Propose], and the writing is not.
func (g *Group) Snapshot(ctx context.Context, w io.Writer) (SnapshotInfo, error) {
	if err := g.member(ctx); err != nil {
		return SnapshotInfo{}, refused("snapshot", err)
	}
	if invalid.IsNil(w) {
		return SnapshotInfo{}, refused("snapshot", invalid.Errorf("the writer is nil"))
	}
	ctx, end, err := g.begin(ctx)
	if err != nil {
		return SnapshotInfo{}, refused("snapshot", err)
	}
	defer end()
	if _, err := g.host.Read(ctx); err != nil {
		return SnapshotInfo{}, fmt.Errorf("group %d: snapshot: %w", g.id, err)
	}
	info, err := g.writeSnapshot(ctx, w)
	if err != nil {
		return info, refused("snapshot", fmt.Errorf("group %d, index %d: %w", g.id, info.Index, err))
	}
	return info, nil
}

func (g *Group) writeSnapshot(ctx context.Context, w io.Writer) (SnapshotInfo, error) {
	index, body, err := g.openView(ctx)
	if err != nil {
		return SnapshotInfo{}, err
	}
	defer func() { _ = body.Close() }() // never fails; a view that is read no more is closed
	info, err := copies.NewInfo(g.node.options.Cluster, g.id, index)
	if err != nil {
		return SnapshotInfo(info), err
	}
	return SnapshotInfo(info), copies.Write(ctx, w, info, body)
}

// openView opens a view of the state in a goroutine, and returns the view's index and body. The
// goroutine is left behind, as a use of the state machine, if the state machine does not return until
// ctx has ended and front.Patience is over.
func (g *Group) openView(ctx context.Context) (uint64, *io.PipeReader, error) {
	body, to := io.Pipe()
	opened, over := make(chan uint64, 1), make(chan error, 2)
	end := func(err error) {
		_ = to.CloseWithError(err) // never fails, and the first counts
		over <- err
	}
	g.uses.Add(1) // beside the caller's use
	go func() {
		defer g.uses.Done()
		end(g.copyView(to, opened))
	}()
	context.AfterFunc(ctx, func() {
		time.AfterFunc(front.Patience, func() {
			end(fmt.Errorf("%w: the state machine, in Snapshot or in Read of its view: %w", ErrNotEnded, context.Cause(ctx)))
		})
	})
	select {
	case index := <-opened:
		return index, body, nil
	case err := <-over:
		return 0, nil, err
	}
}

// copyView opens a view and copies it to a pipe.
func (g *Group) copyView(to *io.PipeWriter, opened chan<- uint64) (err error) {
	view, err := g.user.Snapshot()
	if err != nil {
		return fmt.Errorf("the state machine's Snapshot: %w", err)
	}
	if invalid.IsNil(view) {
		return errors.New("the state machine's Snapshot returned neither a view nor an error")
	}
	defer func() { err = errors.Join(err, view.Close()) }()
	opened <- view.Meta().Index
	buf := make([]byte, copies.ChunkBytes)
	for ended := false; !ended; {
		var n int
		if n, ended, err = files.Fill(view, buf); err != nil {
			return err
		}
		if _, err := to.Write(buf[:n]); err != nil {
			return err // nobody reads
		}
	}
	return nil
}

// OpenMemory opens the state that [Replicate] keeps in a node's directory, for [Restore] and
// [Recover], while the node is not open. Of the options only [Sessions] counts. The caller closes
// the state.
func OpenMemory[M state.Machine](o Options, group uint64, newMachine func() M, options ...GroupOption) (*state.Memory[M], error) {
	if err := o.Validate(); err != nil {
		return nil, err
	}
	if group == 0 {
		return nil, invalid.Errorf("the group's id is 0, want 1 or more")
	}
	if o.Gateway {
		return nil, noReplica(o)
	}
	if newMachine == nil {
		return nil, invalid.Errorf("newMachine of group %d is nil, want a function that returns an empty machine", group)
	}
	o = o.withDefaults()
	m, err := state.OpenMemory(newMachine, state.Options{
		Dir:      filepath.Join(o.Dir, fmt.Sprintf("state-%d", group)),
		Sessions: sessionsOf(options),
		Identity: fmt.Sprintf("cluster %d, node %d, group %d", o.Cluster, o.ID, group),
		Logf: func(format string, args ...any) {
			o.Logger.Info(fmt.Sprintf(format, args...), "node", o.ID, "group", group)
		},
	})
	if err != nil {
		return nil, fmt.Errorf("open the state of group %d: %w", group, err)
	}
	return m, nil
}

// Restore begins a group of a new cluster with a snapshot of [Group.Snapshot]. It is called at
// each first member, before [Open] and with the same options, on an empty directory and an
// empty state machine; the number of members is free. The new cluster has a number of
// its own, because the nodes of the old one may still be there. Restore reads r to the end. It has no
// context, because it lasts as long as r and the disk do, and nothing waits for it: a reader that
// returns an error ends it, and the next call begins again. A wait of 10 s for the log is logged.
//
// A snapshot that is damaged or cut off is [ErrSnapshot], and the group is not begun; neither
// does it begin at a node where Restore was interrupted, until Restore is called again. A member
// without the snapshot cannot take part: the others refuse its messages. (A majority without the
// snapshot could begin an empty group, which the others refuse in the same way.)
func Restore(o Options, group uint64, sm StateMachine, r io.Reader, options ...GroupOption) (SnapshotInfo, error) {
	switch {
	case invalid.IsNil(sm):
		return SnapshotInfo{}, invalid.Errorf("the state machine of group %d is nil", group)
	case invalid.IsNil(r):
		return SnapshotInfo{}, invalid.Errorf("the reader of the snapshot is nil")
	}
	c, config, err := o.closed(group, options)
	switch {
	case err != nil:
	case o.Join || config.joins:
		err = invalid.Errorf("Options.Join is set, or Joining: a node that joins gets the state from the others, Restore is for the first members")
	default:
		c.Voters, err = config.firstMembers(o.withDefaults())
	}
	if err != nil {
		return SnapshotInfo{}, fmt.Errorf("restore: %w", err)
	}
	info, err := copies.Restore(c, sm, r)
	return SnapshotInfo(info), err
}

// Recovered is what [Recover] did.
type Recovered struct {
	// Index is where the log begins now: behind Index-1, the last entry that the survivor had.
	Index uint64
	// Applied is how many entries the state lacked when Recover began.
	Applied uint64
	// Lost are the members that the group goes on without. Their ids are not taken again.
	Lost []uint64
	// Copy is a file with the state, as of [Group.Snapshot].
	Copy string
	// Asked are the addresses at which the lost members were asked for, each without success: look
	// through them for a member that has moved, and that this node did not hear of. Asked is nil
	// if an earlier call, which was interrupted, has begun the log anew.
	Asked []Asked
}

// Recover is the way back after a majority of the members is lost, for good: it has the
// group begin anew, with the survivor as the only member and with the survivor's log. Recover is
// called on the directory of a closed node. Afterwards open the node, and add members
// with ids that were never used.
//
// Everything in this node's log counts as committed: each command that was acknowledged at
// this node is there, and each command stored by a majority with this node in it. A command
// that was acknowledged elsewhere and had not reached this node is gone; call [Inspect] at
// each survivor, and recover the one whose log goes furthest.
//
// lost names all other members, also those whose removal is in the log and perhaps not
// committed. Recover dials each of them, at every address by which this node has ever known the
// member: replicated, in Options.Peers now and at the last start, and named by the member itself.
// Recover refuses ([ErrMajority]) if something answers at any of them. Nobody can tell from here
// a member that is dead from one that the network hides, or that has moved without this node's
// knowledge: so stop the others for certain, and see [Recovered].Asked. The new beginning has a mark
// in the log and in each message: a lost member that comes back, and its old group, are refused by
// the recovered one. A lost member that was in service all the time and has a leader and a majority
// goes on without the recovered node, and says so in its log.
//
// A coded entry that the state lacks cannot be recovered from one node, nor a group that is out of service
// here ([ErrDiffers], [ErrLogLost]); then nothing is changed. After an interruption, Recover is called again
// with the same arguments, or [TakeBack] undoes what was done; until then, [Open] refuses the directory
// ([ErrUnfinished]).
func Recover(ctx context.Context, o Options, group uint64, sm StateMachine, lost []uint64, options ...GroupOption) (Recovered, error) {
	if err := checkContext(ctx); err != nil {
		return Recovered{}, err
	}
	if invalid.IsNil(sm) {
		return Recovered{}, invalid.Errorf("the state machine of group %d is nil", group)
	}
	c, _, err := o.closed(group, options)
	if err != nil {
		return Recovered{}, fmt.Errorf("recover: %w", err)
	}
	r, err := copies.Recover(ctx, c, sm, lost)
	done := Recovered{Index: r.Index, Applied: r.Applied, Lost: r.Lost, Copy: r.Copy}
	for _, a := range r.Asked {
		done.Asked = append(done.Asked, Asked(a))
	}
	return done, err
}

// Inspection is what a directory has of a group.
type Inspection struct {
	// LastIndex and LastTerm are of the last entry. Of two survivors the one with the higher
	// LastTerm has more; with equal terms, the one with the higher LastIndex. If power has failed at a
	// survivor, its state may be ahead of its log, of which Inspect knows nothing: to open and close
	// the node once brings the log up to the state.
	LastIndex, LastTerm uint64
	// Addresses are those that the node knows, by id.
	Addresses map[uint64]string
	// Members are the members as of the last entry, which may not be committed, ascending. Members
	// is nil if the log alone does not show them, because it is empty or has coded entries.
	Members []Member
}

// Inspect looks at the directory of a node that is not open, and changes nothing in the
// group. It is for choosing the survivor to [Recover].
func Inspect(o Options, group uint64) (Inspection, error) {
	c, _, err := o.closed(group, nil)
	if err != nil {
		return Inspection{}, fmt.Errorf("inspect: %w", err)
	}
	i, err := copies.Inspect(c)
	return Inspection{
		LastIndex: i.LastIndex, LastTerm: i.LastTerm, Addresses: i.Addresses,
		Members: membersOf(i.Members, func(id uint64) string { return i.Addresses[id] }),
	}, err
}

// Asked is a question of [Recover] whether a member is alive.
type Asked struct {
	ID      uint64
	Address string
	// Err is why nothing answered; nil if something did.
	Err error
}

// TakeBack undoes a [Recover] that has not ended, for example because another member turned out to
// be alive: the state is again as before, and the node can be opened as a member of its old
// group. A directory without a recovery that can be taken back is [ErrInvalid], and nothing is
// changed: what Recover has ended stays. After an interruption TakeBack is called again.
func TakeBack(o Options, group uint64, sm StateMachine, options ...GroupOption) error {
	if invalid.IsNil(sm) {
		return invalid.Errorf("the state machine of group %d is nil", group)
	}
	c, _, err := o.closed(group, options)
	if err != nil {
		return fmt.Errorf("take back a recovery: %w", err)
	}
	return copies.TakeBack(c, sm)
}

// closed checks the arguments of a call on the directory of a node that is not open, and touches nothing.
func (o Options) closed(group uint64, options []GroupOption) (copies.Config, groupConfig, error) {
	if err := o.Validate(); err != nil {
		return copies.Config{}, groupConfig{}, err
	}
	if o.Gateway {
		return copies.Config{}, groupConfig{}, noReplica(o)
	}
	if group == 0 {
		return copies.Config{}, groupConfig{}, invalid.Errorf("the group's id is 0, want 1 or more")
	}
	o = o.withDefaults()
	config := groupConfig{host: rawnode.Config{Replica: rawnode.ReplicaConfig{ID: o.ID, Group: group}}}
	if err := config.take(group, options); err != nil {
		return copies.Config{}, groupConfig{}, err
	}
	c := copies.Config{
		Cluster: o.Cluster, ID: o.ID, Group: group, Dir: o.Dir, LogDir: filepath.Join(o.Dir, logDir),
		OpenLog: func() (*storage.Engine, error) { return openEngine(o) },
		Book:    o.book(), Logger: o.Logger,
	}
	if coding := config.host.Replica.Coding; coding != nil {
		c.ClearPrefix = coding.ClearPrefix
	}
	return c, config, nil
}

// begin enters a use of the state machine that a close of the group waits for, and ends.
func (g *Group) begin(ctx context.Context) (context.Context, func(), error) {
	if err := g.host.Err(); err != nil {
		return nil, nil, errors.Join(ErrStopped, err)
	}
	return g.use(ctx)
}

// use is begin for a group whose host may not be open yet.
func (g *Group) use(ctx context.Context) (context.Context, func(), error) {
	g.mu.Lock()
	defer g.mu.Unlock()
	if g.closing {
		return nil, nil, ErrStopped
	}
	ctx, cancel := context.WithCancelCause(ctx)
	unhook := context.AfterFunc(g.ending, func() { cancel(ErrStopped) })
	g.uses.Add(1)
	return ctx, func() {
		unhook()
		cancel(nil)
		g.uses.Done()
	}, nil
}

// awaitUses waits for the ends of all uses.
func (g *Group) awaitUses(ctx context.Context) error {
	g.mu.Lock()
	g.closing = true
	g.mu.Unlock()
	g.end()
	done := make(chan struct{})
	go func() { g.uses.Wait(); close(done) }()
	select {
	case <-done:
		return nil
	case <-ctx.Done():
	}
	select { // a use that looks at its own context ends now
	case <-done:
		return nil
	case <-time.After(front.Patience):
		return fmt.Errorf("%w: the state machine, in Query, Digest or Read of a view, or the writer of Snapshot: %w", ErrNotEnded, context.Cause(ctx))
	}
}
