// Copyright 2026 The Weft Authors
// SPDX-License-Identifier: Apache-2.0

package loop

import (
	"encoding/binary"
	"errors"
	"fmt"
	"hash/crc32"
	"io"
	"os"
	"path/filepath"

	"go.etcd.io/raft/v3"
	pb "go.etcd.io/raft/v3/raftpb"
	"google.golang.org/protobuf/proto"

	"github.com/weftraft/weft/cmd/internal/stuck"
	"github.com/weftraft/weft/internal/files"
)

// Kinds of records in the log file.
const (
	recordSnapshot  = 1 // where the log begins, first in each file
	recordHardState = 2
	recordEntry     = 3
)

const (
	recordHeader = 9 // checksum, length, kind
	walName      = "log"
	// rotateBytes is the size at which the log is written anew, without the entries
	// that the state has on disk. keepBytes of these entries stay, for followers that lag.
	rotateBytes = 64 << 20
	keepBytes   = 16 << 20
)

var castagnoli = crc32.MakeTable(crc32.Castagnoli)

// wal is the log: a file to which each Ready is appended, beside the copy in
// memory that raft reads.
type wal struct {
	dir     string
	file    *os.File
	size    int64
	written uint64 // since the start
	buf     []byte
	mem     *raft.MemoryStorage
	disk    stuck.Disk
}

// openWAL reads the log in dir, or begins a log whose voters are the members.
func openWAL(dir string, disk stuck.Disk, members []uint64) (*wal, error) {
	if err := os.MkdirAll(dir, 0o755); err != nil {
		return nil, err
	}
	w := &wal{dir: dir, mem: raft.NewMemoryStorage(), disk: disk}
	file, err := os.OpenFile(filepath.Join(dir, walName), os.O_RDWR, 0o644)
	if errors.Is(err, os.ErrNotExist) {
		// All members begin with the same empty snapshot at index 1.
		begin := &pb.Snapshot{Metadata: &pb.SnapshotMetadata{
			Index: proto.Uint64(1), Term: proto.Uint64(1), ConfState: &pb.ConfState{Voters: members},
		}}
		hard := &pb.HardState{Term: proto.Uint64(1), Vote: proto.Uint64(0), Commit: proto.Uint64(1)}
		return w, errors.Join(w.mem.ApplySnapshot(begin), w.mem.SetHardState(hard), w.begin(begin.GetMetadata(), hard, nil))
	}
	if err != nil {
		return nil, err
	}
	w.file = file
	return w, w.load()
}

// load reads the file into memory and cuts a torn record at the file's end.
func (w *wal) load() error {
	data, err := io.ReadAll(w.file)
	if err != nil {
		return err
	}
	for {
		kind, body, ok := nextRecord(data[w.size:])
		if !ok {
			break
		}
		if err := w.replay(kind, body); err != nil {
			return fmt.Errorf("%s at %d: %w", w.file.Name(), w.size, err)
		}
		w.size += recordHeader + int64(len(body))
	}
	if err := w.file.Truncate(w.size); err != nil {
		return err
	}
	_, err = w.file.Seek(w.size, io.SeekStart)
	return err
}

func nextRecord(data []byte) (kind byte, body []byte, ok bool) {
	if len(data) < recordHeader {
		return 0, nil, false
	}
	n := int64(binary.LittleEndian.Uint32(data[4:]))
	if int64(len(data)) < recordHeader+n || crc32.Checksum(data[4:recordHeader+n], castagnoli) != binary.LittleEndian.Uint32(data) {
		return 0, nil, false
	}
	return data[8], data[recordHeader : recordHeader+n], true
}

func (w *wal) replay(kind byte, body []byte) error {
	switch kind {
	case recordSnapshot:
		meta := &pb.SnapshotMetadata{}
		if err := proto.Unmarshal(body, meta); err != nil {
			return err
		}
		return w.mem.ApplySnapshot(&pb.Snapshot{Metadata: meta})
	case recordHardState:
		hard := &pb.HardState{}
		if err := proto.Unmarshal(body, hard); err != nil {
			return err
		}
		return w.mem.SetHardState(hard)
	case recordEntry:
		e := &pb.Entry{}
		if err := proto.Unmarshal(body, e); err != nil {
			return err
		}
		return w.mem.Append([]*pb.Entry{e})
	}
	return fmt.Errorf("a record of kind %d", kind)
}

// add encodes a record into the buffer.
func (w *wal) add(kind byte, m proto.Message) error {
	at := len(w.buf)
	w.buf = append(w.buf, make([]byte, recordHeader)...)
	var err error
	if w.buf, err = (proto.MarshalOptions{}).MarshalAppend(w.buf, m); err != nil {
		return err
	}
	record := w.buf[at:]
	binary.LittleEndian.PutUint32(record[4:], uint32(len(record)-recordHeader))
	record[8] = kind
	binary.LittleEndian.PutUint32(record, crc32.Checksum(record[4:], castagnoli))
	return nil
}

// save appends the entries and the state of a Ready, and syncs if the Ready must be durable.
func (w *wal) save(hard *pb.HardState, entries []*pb.Entry, sync bool) error {
	for _, e := range entries {
		if err := w.add(recordEntry, e); err != nil {
			return err
		}
	}
	if !raft.IsEmptyHardState(hard) {
		if err := errors.Join(w.add(recordHardState, hard), w.mem.SetHardState(hard)); err != nil {
			return err
		}
	}
	if err := w.flush(sync); err != nil {
		return err
	}
	return w.mem.Append(entries)
}

func (w *wal) flush(sync bool) error {
	w.disk.BeforeWrite()
	n, err := w.file.Write(w.buf)
	w.size += int64(n)
	w.written += uint64(n)
	w.buf = w.buf[:0]
	if err == nil && sync {
		w.disk.BeforeSync()
		err = w.file.Sync()
	}
	return err
}

// begin writes a new file and puts it in the place of the old one.
func (w *wal) begin(meta *pb.SnapshotMetadata, hard *pb.HardState, entries []*pb.Entry) error {
	if w.file != nil {
		if err := w.file.Close(); err != nil {
			return err
		}
	}
	tmp := filepath.Join(w.dir, walName+".tmp")
	var err error
	if w.file, err = os.Create(tmp); err != nil {
		return err
	}
	w.size = 0
	errs := []error{w.add(recordSnapshot, meta), w.add(recordHardState, hard)}
	for _, e := range entries {
		errs = append(errs, w.add(recordEntry, e))
	}
	return errors.Join(append(errs, w.flush(true), os.Rename(tmp, filepath.Join(w.dir, walName)), files.SyncDir(w.dir))...)
}

// compact drops entries up to the applied index, which the state has on disk,
// but keeps some for followers that lag.
func (w *wal) compact(applied uint64) error {
	first, err := w.mem.FirstIndex()
	if err != nil {
		return err
	}
	last, err := w.mem.LastIndex()
	if err != nil {
		return err
	}
	entries, err := w.mem.Entries(first, last+1, 1<<62)
	if err != nil {
		return err
	}
	kept, cut := 0, len(entries)
	for cut > 0 && (kept < keepBytes || entries[cut-1].GetIndex() > applied) {
		cut--
		kept += len(entries[cut].GetData())
	}
	if cut == 0 {
		return nil
	}
	hard, conf, err := w.mem.InitialState()
	if err != nil {
		return err
	}
	at := entries[cut-1]
	meta := &pb.SnapshotMetadata{Index: at.Index, Term: at.Term, ConfState: conf}
	if err := w.begin(meta, hard, entries[cut:]); err != nil {
		return err
	}
	return w.mem.Compact(at.GetIndex())
}
