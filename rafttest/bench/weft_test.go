// Copyright 2026 The Weft Authors
// SPDX-License-Identifier: Apache-2.0

package bench

import (
	"context"
	"errors"

	pb "go.etcd.io/raft/v3/raftpb"

	"github.com/weftraft/weft/raft"
)

// weftStorage counts the calls that the state machine makes.
type weftStorage struct {
	*raft.MemoryStorage
	calls int
}

func (s *weftStorage) InitialState() (*pb.HardState, *pb.ConfState, error) {
	s.calls++
	return s.MemoryStorage.InitialState()
}

func (s *weftStorage) Entries(lo, hi, max uint64) ([]*pb.Entry, error) {
	s.calls++
	return s.MemoryStorage.Entries(lo, hi, max)
}

func (s *weftStorage) Term(i uint64) (uint64, error) {
	s.calls++
	return s.MemoryStorage.Term(i)
}

func (s *weftStorage) LastIndex() (uint64, error) {
	s.calls++
	return s.MemoryStorage.LastIndex()
}

func (s *weftStorage) FirstIndex() (uint64, error) {
	s.calls++
	return s.MemoryStorage.FirstIndex()
}

func (s *weftStorage) Snapshot() (*pb.Snapshot, error) {
	s.calls++
	return s.MemoryStorage.Snapshot()
}

func weftConfig(id uint64, s *weftStorage) *raft.Config {
	return &raft.Config{
		ID: id, ElectionTick: 1 << 30, HeartbeatTick: 1 << 29, Storage: s, Logger: quiet{},
		MaxSizePerMsg: 1 << 30, MaxInflightMsgs: 256,
	}
}

// weftNode is a RawNode and the host's part around it.
type weftNode struct {
	*raft.RawNode
	storage *weftStorage
}

func newWeftNode(id uint64, voters []uint64) node {
	s := &weftStorage{MemoryStorage: raft.NewMemoryStorage()}
	check(s.ApplySnapshot(seed(voters)))
	rn, err := raft.NewRawNode(weftConfig(id, s))
	check(err)
	return &weftNode{RawNode: rn, storage: s}
}

func (n *weftNode) storageCalls() int { return n.storage.calls }

func (n *weftNode) status() { _ = n.Status() }

// work does what one Ready asks for and returns the messages to send.
func (n *weftNode) work() ([]*pb.Message, int) {
	rd := n.Ready()
	if rd.HardState != nil {
		check(n.storage.SetHardState(rd.HardState))
	}
	check(n.storage.Append(rd.Entries))
	n.Advance(rd)
	return rd.Messages, len(rd.CommittedEntries)
}

// compact keeps the log short; it is not the state machine's work.
func (n *weftNode) compact() {
	last, err := n.storage.MemoryStorage.LastIndex()
	check(err)
	if err := n.storage.Compact(last); !errors.Is(err, raft.ErrCompacted) {
		check(err)
	}
}

// weftLoop is a Node that is a group by itself.
type weftLoop struct {
	raft.Node
	storage *weftStorage
}

func newWeftLoop() loop {
	s := &weftStorage{MemoryStorage: raft.NewMemoryStorage()}
	check(s.ApplySnapshot(seed([]uint64{1})))
	n := raft.RestartNode(weftConfig(1, s))
	check(n.Campaign(context.Background()))
	return &weftLoop{Node: n, storage: s}
}

// work does what the next Ready asks for and returns how much was committed.
func (l *weftLoop) work() int {
	rd := <-l.Ready()
	if rd.HardState != nil {
		check(l.storage.SetHardState(rd.HardState))
	}
	check(l.storage.Append(rd.Entries))
	l.Advance()
	return len(rd.CommittedEntries)
}

func (l *weftLoop) storageCalls() int { return l.storage.calls }
