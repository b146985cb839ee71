// Copyright 2026 The Weft Authors
// SPDX-License-Identifier: Apache-2.0

package copies

import (
	"bytes"
	"context"
	"crypto/rand"
	"encoding/hex"
	"encoding/json"
	"errors"
	"fmt"
	"hash/crc32"
	"os"
	"path/filepath"
	"slices"

	pb "go.etcd.io/raft/v3/raftpb"

	"github.com/weftraft/weft/internal/book"
	"github.com/weftraft/weft/internal/files"
	"github.com/weftraft/weft/internal/front"
	"github.com/weftraft/weft/internal/invalid"
	"github.com/weftraft/weft/internal/members"
	"github.com/weftraft/weft/internal/replica"
	"github.com/weftraft/weft/internal/survivor"
	"github.com/weftraft/weft/rawnode"
)

// Errors of recoveries, which package weft has under the same names.
var (
	ErrUnfinished = errors.New("weft: a recovery was begun here and has not ended")
	ErrMajority   = errors.New("weft: a majority is not lost")
)

// Recovered is what Recover did: see package weft.
type Recovered struct {
	Index, Applied uint64
	Lost           []uint64
	Copy           string
	Asked          []Asked
}

// Recover is weft.Recover.
func Recover(ctx context.Context, c Config, sm rawnode.StateMachine, lost []uint64) (Recovered, error) {
	d, err := openSurvivor(c)
	if err != nil {
		return Recovered{}, fmt.Errorf("recover: %w", err)
	}
	r := &recovery{directory: d, user: sm, lost: members.Sorted(lost)}
	done, err := r.run(ctx)
	if err = errors.Join(err, d.engine.Close()); err != nil {
		return done, fmt.Errorf("recover group %d at node %d: %w", c.Group, c.ID, err)
	}
	return done, nil
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
	user  rawnode.StateMachine
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

// planSum is the line with the checksum, behind the plan.
func planSum(text []byte) string { return fmt.Sprintf("%08x\n", crc32.Checksum(text, castagnoli)) }

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
	text, sum, summed := bytes.Cut(data, []byte("\n"))
	if err = json.Unmarshal(text, &p); summed && string(sum) != planSum(text) { // an earlier version wrote no sum
		err = errors.New("its checksum does not match")
	}
	if err == nil && (p.Index < 2 || p.Group == 0 || p.Term == 0) {
		err = fmt.Errorf("it has group %d, index %d, term %d", p.Group, p.Index, p.Term)
	}
	if err != nil {
		return nil, fmt.Errorf("%w: %s is damaged: %w: take the directory of another survivor", ErrUnfinished, planPath(dir), err)
	}
	return &p, nil
}

// CheckFinished returns an error for a directory in which a recovery was begun. That no plan is there, and what else is
// found in the directory, such as the book, may be the work of a process that was killed before it was durable: so
// CheckFinished syncs the directory, before others rest on it.
func CheckFinished(dir string) error {
	p, err := readPlan(dir)
	if err != nil {
		return err
	}
	if p != nil {
		return fmt.Errorf("%w: group %d, without the members %v: call Recover again, with the same arguments, or TakeBack", ErrUnfinished, p.Group, p.Lost)
	}
	return syncDir(dir)
}

func (r *recovery) run(ctx context.Context) (Recovered, error) {
	var err error
	if r.book, err = book.Load(r.Book); err != nil {
		return Recovered{}, err
	}
	p, err := r.begun()
	if err != nil {
		return Recovered{}, err
	}
	if p == nil {
		if p, err = r.plan(ctx); err != nil {
			return Recovered{}, err
		}
	}
	if p.Group != r.Group || !slices.Equal(p.Lost, r.lost) {
		return Recovered{}, fmt.Errorf("%w: group %d, without the members %v; this call is for group %d without %v: call Recover with the arguments of the first call, or TakeBack",
			ErrUnfinished, p.Group, p.Lost, r.Group, r.lost)
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
		Copy: filepath.Join(r.Dir, fmt.Sprintf("recovered-%d-%d.snapshot", p.Group, p.Index)),
	}
	if err := r.carryOut(ctx, p, done.Copy); err != nil {
		return done, err
	}
	return done, r.finish(p)
}

// begun returns the plan of a recovery that was begun here, or nil. The call that wrote it may have been killed before the plan was
// durable, and what follows is not to survive the plan.
func (r *recovery) begun() (*recoveryPlan, error) {
	p, err := readPlan(r.Dir)
	if err != nil || p == nil {
		return nil, err
	}
	return p, syncDir(r.Dir)
}

// syncDir is files.SyncDir, but in tests.
var syncDir = files.SyncDir

// plan finds out whether the group may begin anew, and writes down how.
func (r *recovery) plan(ctx context.Context) (*recoveryPlan, error) {
	if err := (front.Group{Dir: r.Dir, Node: r.ID, ID: r.Group}).OutOfService(); err != nil {
		return nil, err // nor could the group be opened afterwards
	}
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
	p := &recoveryPlan{Group: r.Group, Index: last + 1, Term: term + 1, Lost: r.lost, Unique: hex.EncodeToString(unique), Applied: last - min(last, max(applied, 1))}
	if p.Before, err = r.writeState(ctx, p.beforePath(r.Dir)); err != nil {
		return nil, err
	}
	if p.Book, err = os.ReadFile(r.book.Path()); err != nil && !errors.Is(err, os.ErrNotExist) {
		return nil, err
	}
	return p, r.write(p)
}

// write writes a plan, durably.
func (r *recovery) write(p *recoveryPlan) error {
	text, err := json.Marshal(p)
	if err != nil {
		return err
	}
	return files.Replace(planPath(r.Dir), fmt.Appendf(text, "\n%s", planSum(text)))
}

// logHasBegun reports whether the log is that of the new beginning, or has gone on from there.
func (r *recovery) logHasBegun(p *recoveryPlan) (bool, error) {
	first, err := r.log.FirstIndex()
	return first > p.Index, err
}

// tail loads the state machine and returns the log behind it.
func (r *recovery) tail() (*replica.LogTail, uint64, error) {
	applied, host, err := r.user.Load()
	if err != nil {
		return nil, 0, fmt.Errorf("load the state machine: %w", err)
	}
	tail, err := replica.NewLogTail(r.log, applied, host, r.ClearPrefix)
	return tail, applied, err
}

// membersAt returns the members as of the end of a tail of the log.
func (r *recovery) membersAt(ctx context.Context, tail *replica.LogTail, applied uint64) (*pb.ConfState, error) {
	return r.membersBehind(ctx, tail, &blank{StateMachine: r.user, applied: applied})
}

// membersBehind returns the members as of the end of a tail of the log, behind those of a state.
func (d *directory) membersBehind(ctx context.Context, tail *replica.LogTail, sm rawnode.StateMachine) (conf *pb.ConfState, err error) {
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
	rawnode.StateMachine
	applied uint64
}

func (b *blank) Apply(batch rawnode.Batch) ([]any, error) {
	return make([]any, len(batch.Commands)), nil
}
func (b *blank) Durable() (uint64, error) { return b.applied, nil }

// carryOut brings state and log to the new beginning.
func (r *recovery) carryOut(ctx context.Context, p *recoveryPlan, path string) error {
	begin := replica.Refounding{
		Index: p.Index, Term: p.Term, Voters: []uint64{r.ID},
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
		return errors.Join(err, fmt.Errorf("%w: the state machine is at index %d, and was to begin anew at %d: its Restore did not keep index and host's bytes", rawnode.ErrState, applied, p.Index))
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
	host, err := r.host(tail, front.New(front.Config{User: r.user, Group: r.Group, Book: r.book, Logger: r.Logger}))
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
	if meta = view.Meta(); meta.Index == 0 { // a state that can be restored has an index
		first, err := replica.FirstState(r.log)
		if err != nil {
			return meta, err
		}
		meta = rawnode.SnapshotMeta(first)
	}
	f, err := os.Create(path)
	if err != nil {
		return meta, err
	}
	info, err := NewInfo(r.Cluster, r.Group, meta.Index)
	if err == nil {
		err = Write(ctx, f, info, view)
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
	if err := os.Remove(planPath(r.Dir)); err != nil {
		return err
	}
	if err := os.Remove(p.beforePath(r.Dir)); err != nil && !errors.Is(err, os.ErrNotExist) {
		return err
	}
	return files.SyncDir(r.Dir)
}

// host runs a host on the tail of a log, which talks to nobody.
func (d *directory) host(tail *replica.LogTail, sm rawnode.StateMachine) (*rawnode.Host, error) {
	return survivor.Start(d.ID, d.Group, tail, sm, d.Logger)
}
