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
	"net"
	"os"
	"path/filepath"
	"slices"
	"sync"
	"time"

	pb "go.etcd.io/raft/v3/raftpb"

	"github.com/weftraft/weft/internal/replica"
	"github.com/weftraft/weft/internal/survivor"
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
// lost names all other members. Recover dials each of them, and refuses ([ErrMajority]) if
// something answers at the address of any; nobody can tell from here a member that is dead
// from one that the network hides, so stop the others for certain. The new beginning has a mark in
// the log and in each message: a lost member that comes back, and
// its old group, are refused by the recovered one.
//
// A coded entry that the state lacks cannot be recovered from one node; then nothing is
// changed. After an interruption, Recover is called again with the same arguments; until the
// recovery has ended, [Open] refuses the directory ([ErrUnfinished]).
func Recover(ctx context.Context, o Options, group uint64, sm StateMachine, lost []uint64, options ...GroupOption) (Recovered, error) {
	if err := checkContext(ctx); err != nil {
		return Recovered{}, err
	}
	if isNil(sm) {
		return Recovered{}, invalid("the state machine of group %d is nil", group)
	}
	d, err := openSurvivor(o, group, options)
	if err != nil {
		return Recovered{}, fmt.Errorf("recover: %w", err)
	}
	r := &recovery{directory: d, user: sm, lost: sortedCopy(lost)}
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
//  1. Find out the members, as of the end of the log, and that they are lost. Nothing is written.
//  2. Write the plan. From here on the directory can only be recovered.
//  3. Apply the whole log to the state, and write a copy of the state to a file.
//  4. Restore the state from the copy, with the host's bytes of the new beginning: Restore is
//     durable, and one step.
//  5. Begin the log behind the state. Remove the plan.
type recovery struct {
	*directory
	user StateMachine
	lost []uint64
	book *book
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
		return fmt.Errorf("%w: group %d, without the members %v: call Recover again, with the same arguments", ErrUnfinished, p.Group, p.Lost)
	}
	return nil
}

func (r *recovery) run(ctx context.Context) (Recovered, error) {
	var err error
	if r.book, err = loadBook(r.options); err != nil {
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
		return Recovered{}, fmt.Errorf("%w: group %d, without the members %v; this call is for group %d without %v: call Recover with the arguments of the first call",
			ErrUnfinished, p.Group, p.Lost, r.group, r.lost)
	}
	done := Recovered{
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
	if err := r.checkLost(ctx, members); err != nil {
		return nil, err
	}
	unique := make([]byte, 16)
	if _, err := rand.Read(unique); err != nil {
		return nil, err
	}
	last, term := tail.Last()
	p := &recoveryPlan{Group: r.group, Index: last + 1, Term: term + 1, Lost: r.lost, Unique: hex.EncodeToString(unique), Applied: last - min(last, max(applied, 1))}
	data, err := json.Marshal(p)
	if err != nil {
		return nil, err
	}
	return p, replaceFile(planPath(r.options.Dir), data)
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

// membersAt returns the members as of the end of the log.
func (r *recovery) membersAt(ctx context.Context, tail *replica.LogTail, applied uint64) (conf *pb.ConfState, err error) {
	host, err := r.host(tail, &blank{StateMachine: r.user, applied: applied})
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

// checkLost returns an error unless exactly the members that are named are not there.
func (r *recovery) checkLost(ctx context.Context, conf *pb.ConfState) error {
	members := memberIDs(conf)
	if !isVoter(conf, r.options.ID) {
		return fmt.Errorf("%w: this node (%d) does not vote, the members are %v: recover a voter", ErrNotMember, r.options.ID, members)
	}
	others := slices.DeleteFunc(slices.Clone(members), func(id uint64) bool { return id == r.options.ID })
	if len(others) == 0 {
		return fmt.Errorf("%w: this node (%d) is the only member: open it", ErrMajority, r.options.ID)
	}
	if !slices.Equal(others, r.lost) {
		return invalid("lost is %v, and the members beside this node (%d) are %v: name all of them, if all of them are lost", r.lost, r.options.ID, others)
	}
	there, err := r.whoAnswers(ctx, others)
	if err != nil {
		return err
	}
	if len(there) == 0 {
		return nil
	}
	if hasMajority(conf, append(there, r.options.ID)) {
		return fmt.Errorf("%w: something answers at the addresses of %v, with this node (%d) a majority of the voters %v: open this node", ErrMajority, there, r.options.ID, conf.GetVoters())
	}
	return fmt.Errorf("%w: something answers at the addresses of %v, which are named lost: stop these nodes, compare them with this one by Inspect, and recover the one whose log goes furthest", ErrMajority, there)
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

// whoAnswers returns the nodes at whose addresses something accepts connections. A process that
// is stopped accepts them, too, as its system does.
func (r *recovery) whoAnswers(ctx context.Context, ids []uint64) (there []uint64, err error) {
	var errs []error
	for _, id := range ids {
		if r.book.address(id) == "" {
			errs = append(errs, fmt.Errorf("%w: no address of node %d is known: name it in Options.Peers, so that it can be asked", ErrAddress, id))
		}
	}
	if err := errors.Join(errs...); err != nil {
		return nil, err
	}
	var mu sync.Mutex
	var all sync.WaitGroup
	for _, id := range ids {
		all.Go(func() {
			dialer := net.Dialer{Timeout: probeTimeout}
			conn, err := dialer.DialContext(ctx, "tcp", r.book.address(id))
			if err != nil {
				return
			}
			_ = conn.Close() // it was there
			mu.Lock()
			defer mu.Unlock()
			there = append(there, id)
		})
	}
	all.Wait()
	slices.Sort(there)
	return there, ctx.Err()
}

// carryOut brings state and log to the new beginning.
func (r *recovery) carryOut(ctx context.Context, p *recoveryPlan, path string) error {
	begin := replica.Refounding{
		Index: p.Index, Term: p.Term, Voters: []uint64{r.options.ID},
		Mark: replica.Mark([]byte("recovered " + p.Unique)),
	}
	if first, err := r.log.FirstIndex(); err != nil || first == p.Index+1 {
		return err // the log has begun
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
	host, err := r.host(tail, newMachine(r.user, r.group, r.book, r.options.Logger))
	if err != nil {
		return nil, err
	}
	defer func() { err = errors.Join(err, host.Stop(ctx)) }()
	if err := survivor.AwaitApplied(ctx, host, tail); err != nil {
		return nil, err
	}
	view, err := r.user.Snapshot()
	if err != nil {
		return nil, fmt.Errorf("the state machine's Snapshot: %w", err)
	}
	if isNil(view) {
		return nil, errors.New("the state machine's Snapshot returned neither a view nor an error")
	}
	defer func() { err = errors.Join(err, view.Close()) }()
	f, err := os.Create(path)
	if err != nil {
		return nil, err
	}
	meta := view.Meta()
	info, err := newSnapshotInfo(r.options.Cluster, r.group, meta.Index)
	if err == nil {
		err = copySnapshot(ctx, f, info, view)
	}
	if err == nil {
		err = f.Sync()
	}
	if err = errors.Join(err, f.Close()); err == nil {
		err = syncDir(filepath.Dir(path))
	}
	return meta.Host, err
}

// restoreAnew restores the state from the file, at the new beginning.
func (r *recovery) restoreAnew(begin replica.Refounding, host []byte, path string) error {
	begin.Host = host
	fresh, _, err := begin.Begin()
	if err != nil {
		return err
	}
	f, in, err := openSnapshotFile(path)
	if err != nil {
		return err
	}
	// The host that applied the log has ended, and told the state machine so.
	if _, _, err = r.user.Load(); err != nil {
		err = fmt.Errorf("load the state machine: %w", err)
	} else {
		err = restoreWhole(r.user, rawnode.SnapshotMeta{Index: begin.Index, Host: fresh}, in)
	}
	return errors.Join(err, f.Close())
}

// finish notes that the lost members are not taken again, and removes the plan.
func (r *recovery) finish(p *recoveryPlan) error {
	r.book.found(p.Group, p.Lost)
	if err := r.book.save(); err != nil {
		return err
	}
	if err := os.Remove(planPath(r.options.Dir)); err != nil {
		return err
	}
	return syncDir(r.options.Dir)
}

// host runs a host on the tail of a log, which talks to nobody.
func (r *recovery) host(tail *replica.LogTail, sm StateMachine) (*rawnode.Host, error) {
	return survivor.Start(r.options.ID, r.group, tail, sm, r.options.Logger)
}

// Inspection is what a directory has of a group.
type Inspection struct {
	// LastIndex and LastTerm are of the last entry. Of two survivors the one with the higher
	// LastTerm has more; with equal terms, the one with the higher LastIndex.
	LastIndex, LastTerm uint64
	// Addresses are those that the node knows, by id.
	Addresses map[uint64]string
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
	b, err := loadBook(d.options)
	if err != nil {
		return i, err
	}
	i.Addresses = b.all()
	if i.LastIndex, err = d.log.LastIndex(); err != nil {
		return i, err
	}
	i.LastTerm, err = d.log.Term(i.LastIndex)
	return i, err
}
