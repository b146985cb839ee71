// Copyright 2026 The Weft Authors
// SPDX-License-Identifier: Apache-2.0

// Command host is a group of one member that replicates three commands. It is
// written for upstream's Raft library and knows nothing of Weft.
package main

import (
	"fmt"
	"io"
	"log"
	"os"
	"reflect"

	"go.etcd.io/raft/v3"
	"go.etcd.io/raft/v3/raftpb"
	"google.golang.org/protobuf/proto"
)

func main() {
	if err := run(os.Stdout); err != nil {
		log.Fatal(err)
	}
}

func run(out io.Writer) error {
	storage := raft.NewMemoryStorage()
	rn, err := raft.NewRawNode(&raft.Config{
		ID: 1, ElectionTick: 10, HeartbeatTick: 1, Storage: storage,
		MaxSizePerMsg: 1 << 20, MaxInflightMsgs: 256,
		Logger: &raft.DefaultLogger{Logger: log.New(io.Discard, "", 0)},
	})
	if err != nil {
		return err
	}
	if err := rn.Bootstrap([]raft.Peer{{ID: 1}}); err != nil {
		return err
	}
	commands := []string{"warp", "weft", "selvedge"}
	for applied := 0; applied < len(commands); {
		n, err := turn(rn, storage, out)
		if err != nil {
			return err
		}
		applied += n
		switch {
		case rn.HasReady() || applied == len(commands):
		case rn.BasicStatus().RaftState != raft.StateLeader:
			err = rn.Campaign()
		default:
			err = rn.Propose([]byte(commands[applied]))
		}
		if err != nil {
			return err
		}
	}
	fmt.Fprintf(out, "replicated by %s\n", reflect.TypeOf(raft.RawNode{}).PkgPath())
	return nil
}

// turn does what one Ready asks for and returns the number of commands applied.
func turn(rn *raft.RawNode, storage *raft.MemoryStorage, out io.Writer) (int, error) {
	if !rn.HasReady() {
		return 0, nil
	}
	rd := rn.Ready()
	if err := storage.Append(rd.Entries); err != nil {
		return 0, err
	}
	applied := 0
	for _, e := range rd.CommittedEntries {
		switch {
		case e.GetType() == raftpb.EntryConfChange:
			var cc raftpb.ConfChange
			if err := proto.Unmarshal(e.GetData(), &cc); err != nil {
				return 0, err
			}
			rn.ApplyConfChange(&cc)
		case len(e.GetData()) > 0:
			fmt.Fprintf(out, "applied %q\n", e.GetData())
			applied++
		}
	}
	rn.Advance(rd)
	return applied, nil
}
