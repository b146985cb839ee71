// Code generated from weft_test.go; DO NOT EDIT.

// Copyright 2026 The Weft Authors
// SPDX-License-Identifier: Apache-2.0

package bench

import (
	"context"
	"errors"

	pb "go.etcd.io/raft/v3/raftpb"

	"go.etcd.io/raft/v3"
)

// upstreamStorage counts the calls that the state machine makes.
type upstreamStorage struct {
	*raft.MemoryStorage
	calls int
}

func (s *upstreamStorage) InitialState() (*pb.HardState, *pb.ConfState, error) {
	s.calls++
	return s.MemoryStorage.InitialState()
}

func (s *upstreamStorage) Entries(lo, hi, max uint64) ([]*pb.Entry, error) {
	s.calls++
	return s.MemoryStorage.Entries(lo, hi, max)
}

func (s *upstreamStorage) Term(i uint64) (uint64, error) {
	s.calls++
	return s.MemoryStorage.Term(i)
}

func (s *upstreamStorage) LastIndex() (uint64, error) {
	s.calls++
	return s.MemoryStorage.LastIndex()
}

func (s *upstreamStorage) FirstIndex() (uint64, error) {
	s.calls++
	return s.MemoryStorage.FirstIndex()
}

func (s *upstreamStorage) Snapshot() (*pb.Snapshot, error) {
	s.calls++
	return s.MemoryStorage.Snapshot()
}

func upstreamConfig(id uint64, s *upstreamStorage) *raft.Config {
	return &raft.Config{
		ID: id, ElectionTick: 1 << 30, HeartbeatTick: 1 << 29, Storage: s, Logger: quiet{},
		MaxSizePerMsg: 1 << 30, MaxInflightMsgs: 256,
	}
}

// upstreamNode is a RawNode and the host's part around it.
type upstreamNode struct {
	*raft.RawNode
	storage *upstreamStorage
}

func newUpstreamNode(id uint64, voters []uint64) node {
	s := &upstreamStorage{MemoryStorage: raft.NewMemoryStorage()}
	check(s.ApplySnapshot(seed(voters)))
	rn, err := raft.NewRawNode(upstreamConfig(id, s))
	check(err)
	return &upstreamNode{RawNode: rn, storage: s}
}

func (n *upstreamNode) storageCalls() int { return n.storage.calls }

func (n *upstreamNode) status() { _ = n.Status() }

// work does what one Ready asks for and returns the messages to send.
func (n *upstreamNode) work() ([]*pb.Message, int) {
	rd := n.Ready()
	if rd.HardState != nil {
		check(n.storage.SetHardState(rd.HardState))
	}
	check(n.storage.Append(rd.Entries))
	n.Advance(rd)
	return rd.Messages, len(rd.CommittedEntries)
}

// compact keeps the log short; it is not the state machine's work.
func (n *upstreamNode) compact() {
	last, err := n.storage.MemoryStorage.LastIndex()
	check(err)
	if err := n.storage.Compact(last); !errors.Is(err, raft.ErrCompacted) {
		check(err)
	}
}

// upstreamLoop is a Node that is a group by itself.
type upstreamLoop struct {
	raft.Node
	storage *upstreamStorage
}

func newUpstreamLoop() loop {
	s := &upstreamStorage{MemoryStorage: raft.NewMemoryStorage()}
	check(s.ApplySnapshot(seed([]uint64{1})))
	n := raft.RestartNode(upstreamConfig(1, s))
	check(n.Campaign(context.Background()))
	return &upstreamLoop{Node: n, storage: s}
}

// work does what the next Ready asks for and returns how much was committed.
func (l *upstreamLoop) work() int {
	rd := <-l.Ready()
	if rd.HardState != nil {
		check(l.storage.SetHardState(rd.HardState))
	}
	check(l.storage.Append(rd.Entries))
	l.Advance()
	return len(rd.CommittedEntries)
}

func (l *upstreamLoop) storageCalls() int { return l.storage.calls }
