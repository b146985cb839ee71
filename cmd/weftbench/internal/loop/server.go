// Copyright 2026 The Weft Authors
// SPDX-License-Identifier: Apache-2.0

package loop

import (
	"context"
	"encoding/binary"
	"errors"
	"fmt"
	"path/filepath"
	"sync"
	"sync/atomic"
	"time"

	"go.etcd.io/raft/v3"
	pb "go.etcd.io/raft/v3/raftpb"
	"google.golang.org/protobuf/proto"

	"github.com/weftraft/weft/cmd/internal/stuck"
)

// Config says which node to run.
type Config struct {
	ID             uint64
	Peers          map[uint64]string // all members' addresses for each other
	Listen         string            // where to listen for the others; empty: Peers[ID]
	ClientListen   string
	Data           string
	Disk           stuck.Disk // of Data, for experiments
	Tick           time.Duration
	HeartbeatTicks int
	ElectionTicks  int
}

// idBytes stand before a proposal or name a read: the node, and its count.
const idBytes = 16

// server is one node.
type server struct {
	cfg   Config
	node  raft.Node
	wal   *wal
	state *State
	peers *peers

	nextID  atomic.Uint64
	written atomic.Uint64 // bytes of log

	mu      sync.Mutex
	applied uint64
	waiting map[string]chan uint64 // by id: gets an index
	reads   map[uint64][]chan struct{}
}

// storage is the log in memory. A snapshot is made when the library asks for one.
type storage struct {
	*raft.MemoryStorage
	state *State
}

// Snapshot implements raft.Storage.
func (s storage) Snapshot() (*pb.Snapshot, error) {
	data, index, err := s.state.Freeze().Read()
	if err != nil {
		return nil, raft.ErrSnapshotTemporarilyUnavailable
	}
	term, err := s.Term(index)
	if err != nil {
		return nil, raft.ErrSnapshotTemporarilyUnavailable
	}
	_, conf, err := s.InitialState()
	return &pb.Snapshot{Data: data, Metadata: &pb.SnapshotMetadata{Index: &index, Term: &term, ConfState: conf}}, err
}

func (s *server) open() (err error) {
	var members []uint64
	for id := range s.cfg.Peers {
		members = append(members, id)
	}
	if s.wal, err = openWAL(filepath.Join(s.cfg.Data, "log"), s.cfg.Disk, members); err != nil {
		return err
	}
	if s.state, err = OpenState(filepath.Join(s.cfg.Data, "state"), s.cfg.Disk); err != nil {
		return err
	}
	hard, _, err := s.wal.mem.InitialState()
	if err != nil {
		return err
	}
	// The state may be newer than the commit index that was written last.
	if hard.GetCommit() < s.state.applied {
		hard = proto.CloneOf(hard)
		hard.Commit = &s.state.applied
		if err := s.wal.mem.SetHardState(hard); err != nil {
			return err
		}
	}
	s.applied = max(1, s.state.applied) // 1 is where logs begin
	s.nextID.Store(uint64(time.Now().UnixNano()))
	s.node = raft.RestartNode(&raft.Config{
		ID: s.cfg.ID, ElectionTick: s.cfg.ElectionTicks, HeartbeatTick: s.cfg.HeartbeatTicks,
		Storage: storage{s.wal.mem, s.state}, Applied: s.applied,
		MaxSizePerMsg: 1 << 20, MaxInflightMsgs: 256, MaxUncommittedEntriesSize: 1 << 30,
		PreVote: true, CheckQuorum: true,
	})
	return nil
}

// run is the loop of the library's README.
func (s *server) run(ctx context.Context) error {
	tick := time.NewTicker(s.cfg.Tick)
	defer tick.Stop()
	leads := false
	for {
		select {
		case <-tick.C:
			s.node.Tick()
		case rd := <-s.node.Ready():
			if rd.SoftState != nil {
				leads = rd.RaftState == raft.StateLeader
			}
			if err := s.handle(rd, leads); err != nil {
				return err
			}
			s.node.Advance()
		case <-ctx.Done():
			return nil
		}
	}
}

// handle does the work of a Ready. A leader may send before its own write.
func (s *server) handle(rd raft.Ready, leads bool) error {
	if leads {
		s.peers.send(rd.Messages)
	}
	if !raft.IsEmptySnap(rd.Snapshot) {
		if err := s.restore(rd.Snapshot, rd.HardState); err != nil {
			return err
		}
	}
	if err := s.wal.save(rd.HardState, rd.Entries, rd.MustSync); err != nil {
		return err
	}
	s.written.Store(s.wal.written)
	if !leads {
		s.peers.send(rd.Messages)
	}
	for _, r := range rd.ReadStates {
		s.answer(string(r.RequestCtx), r.Index)
	}
	if err := s.apply(rd.CommittedEntries); err != nil {
		return err
	}
	if s.wal.size < rotateBytes {
		return nil
	}
	return errors.Join(s.state.Flush(), s.wal.compact(s.state.applied))
}

func (s *server) restore(snap *pb.Snapshot, hard *pb.HardState) error {
	meta := snap.GetMetadata()
	if err := s.state.Restore(snap.GetData(), meta.GetIndex()); err != nil {
		return err
	}
	if raft.IsEmptyHardState(hard) {
		var err error
		if hard, _, err = s.wal.mem.InitialState(); err != nil {
			return err
		}
	}
	err := errors.Join(s.wal.mem.ApplySnapshot(&pb.Snapshot{Metadata: meta}), s.wal.begin(meta, hard, nil))
	s.setApplied(meta.GetIndex())
	return err
}

// apply applies entries and answers the callers of this node that wait for them.
func (s *server) apply(entries []*pb.Entry) error {
	if len(entries) == 0 {
		return nil
	}
	var commands [][]byte
	for _, e := range entries {
		if data := e.GetData(); len(data) >= idBytes {
			commands = append(commands, data[idBytes:])
		}
	}
	last := entries[len(entries)-1].GetIndex()
	if err := s.state.Apply(last, commands); err != nil {
		return err
	}
	for _, e := range entries {
		if data := e.GetData(); len(data) >= idBytes && binary.BigEndian.Uint64(data) == s.cfg.ID {
			s.answer(string(data[:idBytes]), e.GetIndex())
		}
	}
	s.setApplied(last)
	return nil
}

func (s *server) setApplied(index uint64) {
	s.mu.Lock()
	defer s.mu.Unlock()
	s.applied = index
	for at, waiters := range s.reads {
		if at <= index {
			for _, w := range waiters {
				close(w)
			}
			delete(s.reads, at)
		}
	}
}

// register returns the id of a new call and the channel for the call's answer.
func (s *server) register() (id []byte, answer chan uint64) {
	id = binary.BigEndian.AppendUint64(make([]byte, 0, idBytes), s.cfg.ID)
	id = binary.BigEndian.AppendUint64(id, s.nextID.Add(1))
	answer = make(chan uint64, 1)
	s.mu.Lock()
	defer s.mu.Unlock()
	s.waiting[string(id)] = answer
	return id, answer
}

func (s *server) forget(id []byte) {
	s.mu.Lock()
	defer s.mu.Unlock()
	delete(s.waiting, string(id))
}

func (s *server) answer(id string, index uint64) {
	s.mu.Lock()
	defer s.mu.Unlock()
	if c := s.waiting[id]; c != nil {
		c <- index
		delete(s.waiting, id)
	}
}

// propose replicates a command and waits until it is applied here.
func (s *server) propose(ctx context.Context, command []byte) (index uint64, err error) {
	id, answer := s.register()
	defer s.forget(id)
	if err := s.node.Propose(ctx, append(id, command...)); err != nil {
		return 0, err
	}
	select {
	case index := <-answer:
		return index, nil
	case <-ctx.Done():
		return 0, ctx.Err()
	}
}

// read waits until this node has applied every entry committed before the call.
func (s *server) read(ctx context.Context) error {
	id, answer := s.register()
	defer s.forget(id)
	if err := s.node.ReadIndex(ctx, id); err != nil {
		return err
	}
	var index uint64
	select {
	case index = <-answer:
	case <-ctx.Done():
		return fmt.Errorf("no leader confirmed: %w", ctx.Err())
	}
	s.mu.Lock()
	if s.applied >= index {
		s.mu.Unlock()
		return nil
	}
	done := make(chan struct{})
	s.reads[index] = append(s.reads[index], done)
	s.mu.Unlock()
	select {
	case <-done:
		return nil
	case <-ctx.Done():
		return ctx.Err()
	}
}
