// Copyright 2026 The Weft Authors
// SPDX-License-Identifier: Apache-2.0

package weft

import (
	"context"
	"crypto/rand"
	"encoding/hex"
	"encoding/json"
	"errors"
	"fmt"
	"os"
	"path/filepath"
	"slices"
	"time"

	pb "go.etcd.io/raft/v3/raftpb"

	"github.com/weftraft/weft/internal/book"
	"github.com/weftraft/weft/internal/files"
	"github.com/weftraft/weft/internal/front"
	"github.com/weftraft/weft/internal/invalid"
	"github.com/weftraft/weft/internal/members"
	"github.com/weftraft/weft/internal/replica"
	"github.com/weftraft/weft/internal/survivor"
	"github.com/weftraft/weft/raft"
	"github.com/weftraft/weft/rawnode"
)

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
// A coded entry that the state lacks cannot be recovered from one node; then nothing is
// changed. After an interruption, Recover is called again with the same arguments, or
// [TakeBack] undoes what was done; until then, [Open] refuses the directory ([ErrUnfinished]).
func Recover(ctx context.Context, o Options, group uint64, sm StateMachine, lost []uint64, options ...GroupOption) (Recovered, error) {
	if err := checkContext(ctx); err != nil {
		return Recovered{}, err
	}
	if invalid.IsNil(sm) {
		return Recovered{}, invalid.Errorf("the state machine of group %d is nil", group)
	}
	d, err := openSurvivor(o, group, options)
	if err != nil {
		return Recovered{}, fmt.Errorf("recover: %w", err)
	}
	r := &recovery{directory: d, user: sm, lost: members.Sorted(lost)}
	done, err := r.run(ctx)
	if err = errors.Join(err, d.engine.Close()); err != nil {
		return done, fmt.Errorf("recover group %d at node %d: %w", group, o.ID, err)
	}
	return done, nil
}

// openSurvivor opens the log of one group in a directory that has one, and makes none.
func openSurvivor(o Options, group uint64, options []GroupOption) (*directory, error) {
	if err := o.Validate(); err != nil {
		return nil, err
	}
	if _, err := os.Stat(filepath.Join(o.Dir, logDir)); err != nil {
		return nil, fmt.Errorf("there is no log, so nothing survived in Options.Dir (%s), or the directory is another one: %w", o.Dir, err)
	}
	return openDirectory(o, group, options)
}

// recovery is one call of Recover, in five steps. Each step can be interrupted and done again:
//
//  1. Find out the members, and that they are lost. Nothing is written.
//  2. Write a copy of the state as it is to a file, and then the plan. From here on the
//     directory can only be recovered, or the recovery be taken back.
//  3. Apply the whole log to the state, and write a copy of the state to a file.
//  4. Restore the state from the copy, with the host's bytes of the new beginning: Restore is
//     durable, and one step.
//  5. Begin the log behind the state. From here on nothing can be taken back. Remove the plan,
//     and the copy of step 2.
type recovery struct {
	*directory
	user  StateMachine
	lost  []uint64
	book  *book.Book
	asked []Asked
}

// recoveryPlan is what a recovery is about to do, in a file.
type recoveryPlan struct {
	Group  uint64   `json:"group"`
	Index  uint64   `json:"index"`
	Term   uint64   `json:"term"`
	Lost   []uint64 `json:"lost"`
	Unique string   `json:"unique"`
	// Applied is how many entries the state lacked.
	Applied uint64 `json:"applied"`
	// Before is the state before the recovery, without its body, and Book the file of addresses.
	Before rawnode.SnapshotMeta `json:"before"`
	Book   []byte               `json:"book"`
}

// beforePath is the file with the body of the state before the recovery.
func (p *recoveryPlan) beforePath(dir string) string {
	return filepath.Join(dir, fmt.Sprintf("before-recovery-%d-%d.snapshot", p.Group, p.Index))
}

func planPath(dir string) string { return filepath.Join(dir, "recovery") }

// readPlan returns the plan of a recovery that has not ended, or nil.
func readPlan(dir string) (*recoveryPlan, error) {
	data, err := os.ReadFile(planPath(dir))
	if errors.Is(err, os.ErrNotExist) {
		return nil, nil
	}
	if err != nil {
		return nil, err
	}
	var p recoveryPlan
	err = json.Unmarshal(data, &p)
	if err == nil && (p.Index < 2 || p.Group == 0 || p.Term == 0) {
		err = fmt.Errorf("it has group %d, index %d, term %d", p.Group, p.Index, p.Term)
	}
	if err != nil {
		return nil, fmt.Errorf("%w: %s is damaged: %w: take the directory of another survivor", ErrUnfinished, planPath(dir), err)
	}
	return &p, nil
}

// checkFinished returns an error for a directory in which a recovery was begun.
func checkFinished(dir string) error {
	p, err := readPlan(dir)
	if err != nil {
		return err
	}
	if p != nil {
		return fmt.Errorf("%w: group %d, without the members %v: call Recover again, with the same arguments, or TakeBack", ErrUnfinished, p.Group, p.Lost)
	}
	return nil
}

func (r *recovery) run(ctx context.Context) (Recovered, error) {
	var err error
	if r.book, err = book.Load(r.options.book()); err != nil {
		return Recovered{}, err
	}
	p, err := readPlan(r.options.Dir)
	if err != nil {
		return Recovered{}, err
	}
	if p == nil {
		if p, err = r.plan(ctx); err != nil {
			return Recovered{}, err
		}
	}
	if p.Group != r.group || !slices.Equal(p.Lost, r.lost) {
		return Recovered{}, fmt.Errorf("%w: group %d, without the members %v; this call is for group %d without %v: call Recover with the arguments of the first call, or TakeBack",
			ErrUnfinished, p.Group, p.Lost, r.group, r.lost)
	}
	if begun, err := r.logHasBegun(p); err != nil {
		return Recovered{}, err
	} else if !begun && r.asked == nil {
		if err := r.ask(ctx, nil, p.Lost); err != nil { // after an interruption
			return Recovered{Asked: r.asked}, err
		}
	}
	done := Recovered{
		Asked: r.asked,
		Index: p.Index, Applied: p.Applied, Lost: p.Lost,
		Copy: filepath.Join(r.options.Dir, fmt.Sprintf("recovered-%d-%d.snapshot", p.Group, p.Index)),
	}
	if err := r.carryOut(ctx, p, done.Copy); err != nil {
		return done, err
	}
	return done, r.finish(p)
}

// plan finds out whether the group may begin anew, and writes down how.
func (r *recovery) plan(ctx context.Context) (*recoveryPlan, error) {
	tail, applied, err := r.tail()
	if err != nil {
		return nil, err
	}
	members, err := r.membersAt(ctx, tail, applied)
	if err != nil {
		return nil, err
	}
	committed, err := r.membersAt(ctx, tail.Committed(), applied)
	if err != nil {
		return nil, err
	}
	if err := r.checkLost(ctx, members, committed); err != nil {
		return nil, err
	}
	unique := make([]byte, 16)
	if _, err := rand.Read(unique); err != nil {
		return nil, err
	}
	last, term := tail.Last()
	p := &recoveryPlan{Group: r.group, Index: last + 1, Term: term + 1, Lost: r.lost, Unique: hex.EncodeToString(unique), Applied: last - min(last, max(applied, 1))}
	if p.Before, err = r.writeState(ctx, p.beforePath(r.options.Dir)); err != nil {
		return nil, err
	}
	if p.Book, err = os.ReadFile(r.book.Path()); err != nil && !errors.Is(err, os.ErrNotExist) {
		return nil, err
	}
	data, err := json.Marshal(p)
	if err != nil {
		return nil, err
	}
	return p, files.Replace(planPath(r.options.Dir), data)
}

// logHasBegun reports whether the log is that of the new beginning.
func (r *recovery) logHasBegun(p *recoveryPlan) (bool, error) {
	first, err := r.log.FirstIndex()
	return first == p.Index+1, err
}

// tail loads the state machine and returns the log behind it.
func (r *recovery) tail() (*replica.LogTail, uint64, error) {
	applied, _, err := r.user.Load()
	if err != nil {
		return nil, 0, fmt.Errorf("load the state machine: %w", err)
	}
	clearPrefix := 0
	if c := r.config.host.Replica.Coding; c != nil {
		clearPrefix = c.ClearPrefix
	}
	tail, err := replica.NewLogTail(r.log, applied, clearPrefix)
	return tail, applied, err
}

// membersAt returns the members as of the end of a tail of the log.
func (r *recovery) membersAt(ctx context.Context, tail *replica.LogTail, applied uint64) (*pb.ConfState, error) {
	return r.membersBehind(ctx, tail, &blank{StateMachine: r.user, applied: applied})
}

// membersBehind returns the members as of the end of a tail of the log, behind those of a state.
func (d *directory) membersBehind(ctx context.Context, tail *replica.LogTail, sm StateMachine) (conf *pb.ConfState, err error) {
	host, err := d.host(tail, sm)
	if err != nil {
		return nil, err
	}
	defer func() { err = errors.Join(err, host.Stop(ctx)) }()
	err = survivor.AwaitApplied(ctx, host, tail)
	return host.Status().Members, err
}

// blank is a state machine that applies nothing.
type blank struct {
	StateMachine
	applied uint64
}

func (b *blank) Apply(batch Batch) ([]any, error) { return make([]any, len(batch.Commands)), nil }
func (b *blank) Durable() (uint64, error)         { return b.applied, nil }

// carryOut brings state and log to the new beginning.
func (r *recovery) carryOut(ctx context.Context, p *recoveryPlan, path string) error {
	begin := replica.Refounding{
		Index: p.Index, Term: p.Term, Voters: []uint64{r.options.ID},
		Mark: replica.Mark([]byte("recovered " + p.Unique)),
	}
	if begun, err := r.logHasBegun(p); err != nil || begun {
		return err
	}
	applied, host, err := r.user.Load()
	if err != nil {
		return fmt.Errorf("load the state machine: %w", err)
	}
	if applied < p.Index {
		if host, err = r.applyAll(ctx, path); err != nil {
			return err
		}
		if err := r.restoreAnew(begin, host, path); err != nil {
			return err
		}
		if applied, host, err = r.user.Load(); err != nil {
			return fmt.Errorf("load the state machine: %w", err)
		}
	}
	if f, err := replica.ReadFounded(host); err != nil || applied != p.Index || f.Mark != begin.Mark {
		return errors.Join(err, fmt.Errorf("%w: the state machine is at index %d, and was to begin anew at %d: its Restore did not keep index and host's bytes", ErrState, applied, p.Index))
	}
	_, write, err := begin.Begin()
	if err != nil {
		return err
	}
	write.Snapshot.Data = host
	return r.log.AppendWait(ctx, *write)
}

// applyAll has the state machine apply the whole log, and writes its state to a file. It
// returns the host's bytes as of the end of the log.
func (r *recovery) applyAll(ctx context.Context, path string) (hostBytes []byte, err error) {
	tail, _, err := r.tail()
	if err != nil {
		return nil, err
	}
	host, err := r.host(tail, front.New(front.Config{User: r.user, Group: r.group, Book: r.book, Logger: r.options.Logger}))
	if err != nil {
		return nil, err
	}
	defer func() { err = errors.Join(err, host.Stop(ctx)) }()
	if err := survivor.AwaitApplied(ctx, host, tail); err != nil {
		return nil, err
	}
	meta, err := r.writeState(ctx, path)
	return meta.Host, err
}

// writeState writes the state to a file, durably, and returns what it is.
func (r *recovery) writeState(ctx context.Context, path string) (meta rawnode.SnapshotMeta, err error) {
	view, err := r.user.Snapshot()
	if err != nil {
		return meta, fmt.Errorf("the state machine's Snapshot: %w", err)
	}
	if invalid.IsNil(view) {
		return meta, errors.New("the state machine's Snapshot returned neither a view nor an error")
	}
	defer func() { err = errors.Join(err, view.Close()) }()
	f, err := os.Create(path)
	if err != nil {
		return meta, err
	}
	meta = view.Meta()
	info, err := newSnapshotInfo(r.options.Cluster, r.group, meta.Index)
	if err == nil {
		err = copySnapshot(ctx, f, info, view)
	}
	if err == nil {
		err = f.Sync()
	}
	if err = errors.Join(err, f.Close()); err == nil {
		err = files.SyncDir(filepath.Dir(path))
	}
	return meta, err
}

// restoreAnew restores the state from the file, at the new beginning.
func (r *recovery) restoreAnew(begin replica.Refounding, host []byte, path string) error {
	begin.Host = host
	fresh, _, err := begin.Begin()
	if err != nil {
		return err
	}
	// The host that applied the log has ended, and told the state machine so.
	if _, _, err = r.user.Load(); err != nil {
		return fmt.Errorf("load the state machine: %w", err)
	}
	return r.restoreFile(rawnode.SnapshotMeta{Index: begin.Index, Host: fresh}, path)
}

// restoreFile restores the state from a file.
func (r *recovery) restoreFile(meta rawnode.SnapshotMeta, path string) error {
	f, in, err := openSnapshotFile(path)
	if err != nil {
		return err
	}
	return errors.Join(restoreWhole(r.user, meta, in), f.Close())
}

// finish notes that the lost members are not taken again, and removes the plan.
func (r *recovery) finish(p *recoveryPlan) error {
	r.book.Found(p.Group, p.Lost)
	if err := r.book.Save(); err != nil {
		return err
	}
	return r.forget(p)
}

// forget removes the plan, and what only the plan needs.
func (r *recovery) forget(p *recoveryPlan) error {
	if err := os.Remove(planPath(r.options.Dir)); err != nil {
		return err
	}
	if err := os.Remove(p.beforePath(r.options.Dir)); err != nil && !errors.Is(err, os.ErrNotExist) {
		return err
	}
	return files.SyncDir(r.options.Dir)
}

// host runs a host on the tail of a log, which talks to nobody.
func (d *directory) host(tail *replica.LogTail, sm StateMachine) (*rawnode.Host, error) {
	return survivor.Start(d.options.ID, d.group, tail, sm, d.options.Logger)
}

// Inspection is what a directory has of a group.
type Inspection struct {
	// LastIndex and LastTerm are of the last entry. Of two survivors the one with the higher
	// LastTerm has more; with equal terms, the one with the higher LastIndex.
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
	d, err := openSurvivor(o, group, nil)
	if err != nil {
		return Inspection{}, fmt.Errorf("inspect: %w", err)
	}
	i, err := d.inspect()
	if err = errors.Join(err, d.engine.Close()); err != nil {
		return i, fmt.Errorf("inspect group %d at node %d: %w", group, o.ID, err)
	}
	return i, nil
}

func (d *directory) inspect() (i Inspection, err error) {
	b, err := book.Load(d.options.book())
	if err != nil {
		return i, err
	}
	i.Addresses = b.All()
	if i.LastIndex, err = d.log.LastIndex(); err != nil {
		return i, err
	}
	if i.LastTerm, err = d.log.Term(i.LastIndex); err != nil {
		return i, err
	}
	conf, err := d.members()
	i.Members = membersOf(conf, func(id uint64) string { return i.Addresses[id] })
	return i, err
}

// inspectTime bounds how long Inspect reads the log for the members.
const inspectTime = time.Minute

// members returns the members that the log shows, or nil.
func (d *directory) members() (*pb.ConfState, error) {
	snapshot, err := d.log.Snapshot()
	if errors.Is(err, raft.ErrSnapshotTemporarilyUnavailable) {
		return nil, nil // an empty log
	}
	if err != nil {
		return nil, err
	}
	meta := snapshot.GetMetadata()
	tail, err := replica.NewLogTail(d.log, meta.GetIndex(), 0)
	if errors.Is(err, replica.ErrCodedTail) {
		return nil, nil
	}
	if err != nil {
		return nil, err
	}
	ctx, cancel := context.WithTimeout(context.Background(), inspectTime)
	defer cancel()
	return d.membersBehind(ctx, tail, &stateless{
		blank: blank{applied: meta.GetIndex()}, host: replica.HostBytes(meta.GetTerm(), meta.GetIndex(), meta.GetConfState()),
	})
}

// stateless is a state machine of which only the members are known.
type stateless struct {
	blank
	host []byte
}

func (s *stateless) Load() (uint64, []byte, error) { return s.applied, s.host, nil }
