// Copyright 2026 The Weft Authors
// SPDX-License-Identifier: Apache-2.0

// Package backup writes and reads the file of a backup: all keys and values of a
// cluster as of one moment, apart from groups and nodes, so that they can be put into a
// cluster of any size.
//
// The file begins with "weftkvb" and the format version (1 byte), and a header: uvarint
// length, then JSON. Each key is a record: the type (1 byte: 1 bytes, 2 a hash, 3 a sorted
// set), uvarint length of the key, the key, uvarint size of the value, uvarint deadline in
// milliseconds since 1970 or 0, the value, and the CRC-32C of all that (4 bytes). The value
// of a hash is fields and values in turn, each a uvarint length and the bytes; that of a
// sorted set is its members, each as kv.AppendScored has it. Version 1 had no types but
// bytes. A 0 byte ends the records; the number
// of records (8 bytes) and the SHA-256 of everything before (32 bytes) end the file.
// Integers of fixed size are big-endian.
package backup

import (
	"bufio"
	"crypto/sha256"
	"encoding/binary"
	"encoding/json"
	"errors"
	"fmt"
	"hash"
	"hash/crc32"
	"io"
	"time"

	"github.com/weftraft/weft/cmd/kvdemo/internal/kv"
)

const (
	magic = "weftkvb"
	// version is that of the format, and oldestVersion the first that can be read.
	version       = 2
	oldestVersion = 1

	maxHeaderBytes = 1 << 20
	endMark        = 0
)

// errDamaged wraps what is wrong with a file: it is not whole, or not what was written.
var errDamaged = errors.New("the backup is damaged")

// errVersion says that another version of kvdemo wrote the file.
var errVersion = errors.New("the backup has an unknown format version")

// Header says what a backup is of.
type Header struct {
	Cluster uint64    `json:"cluster"`
	Made    time.Time `json:"made"`
	// Groups has the revision of each group, group 1 first.
	Groups []uint64 `json:"groups"`
}

// Entry is a key.
type Entry struct {
	Key      string
	Size     int64 // of the value
	Deadline int64 // milliseconds since 1970, 0 for none
	Type     kv.Type
}

var castagnoli = crc32.MakeTable(crc32.Castagnoli)

// Writer writes a backup.
type Writer struct {
	w     *bufio.Writer
	file  hash.Hash
	entry hash.Hash32
	left  int64 // of the value under way
	open  bool  // an entry is
	count uint64
}

// NewWriter writes the header.
func NewWriter(w io.Writer, h Header) (*Writer, error) {
	text, err := json.Marshal(h)
	if err != nil {
		return nil, err
	}
	file := sha256.New()
	b := &Writer{w: bufio.NewWriterSize(io.MultiWriter(w, file), 256<<10), file: file, entry: crc32.New(castagnoli)}
	return b, b.write(append(binary.AppendUvarint(append([]byte(magic), version), uint64(len(text))), text...))
}

func (w *Writer) write(b []byte) error {
	_, _ = w.entry.Write(b) // a hash.Hash never fails
	_, err := w.w.Write(b)
	return err
}

// Begin begins an entry, whose value follows by Write.
func (w *Writer) Begin(e Entry) error {
	if err := w.end(); err != nil {
		return err
	}
	if e.Type < kv.TypeString || e.Type > kv.TypeSortedSet {
		return fmt.Errorf("%w entry: key %q has the type %d, want %d to %d", kv.ErrInvalid, e.Key, e.Type, kv.TypeString, kv.TypeSortedSet)
	}
	w.entry.Reset()
	w.open, w.left = true, e.Size
	w.count++
	b := binary.AppendUvarint([]byte{byte(e.Type)}, uint64(len(e.Key)))
	b = append(b, e.Key...)
	b = binary.AppendUvarint(b, uint64(e.Size))
	return w.write(binary.AppendUvarint(b, uint64(e.Deadline)))
}

// Write implements io.Writer: it writes the value of the entry, or some of it.
func (w *Writer) Write(b []byte) (int, error) {
	if w.left -= int64(len(b)); w.left < 0 {
		return 0, fmt.Errorf("%w: a value of %d bytes more than was said", errDamaged, -w.left)
	}
	return len(b), w.write(b)
}

// end ends the entry under way.
func (w *Writer) end() error {
	if !w.open {
		return nil
	}
	w.open = false
	if w.left != 0 {
		return fmt.Errorf("%w: a value of %d bytes less than was said", errDamaged, w.left)
	}
	return w.write(binary.BigEndian.AppendUint32(nil, w.entry.Sum32()))
}

// Close ends the file, and returns how many entries it has.
func (w *Writer) Close() (uint64, error) {
	err := w.end()
	if err == nil {
		err = w.write(binary.BigEndian.AppendUint64([]byte{endMark}, w.count))
	}
	if err == nil {
		err = w.w.Flush()
	}
	if err == nil {
		_, err = w.w.Write(w.file.Sum(nil))
	}
	return w.count, errors.Join(err, w.w.Flush())
}

// Reader reads a backup.
type Reader struct {
	Header Header

	r     *bufio.Reader
	file  hash.Hash
	entry hash.Hash32
	at    int64
	left  int64
	open  bool
	count uint64
	last  bool
	types kv.Type // the last that the version has
}

// NewReader reads the header.
func NewReader(r io.Reader) (*Reader, error) {
	b := &Reader{r: bufio.NewReaderSize(r, 256<<10), file: sha256.New(), entry: crc32.New(castagnoli)}
	head := make([]byte, len(magic)+1)
	if err := b.read(head); err != nil {
		return nil, err
	}
	if string(head[:len(magic)]) != magic {
		return nil, b.bad("it begins with %q, want %q: this is no backup of kvdemo", head[:len(magic)], magic)
	}
	switch v := head[len(magic)]; {
	case v < oldestVersion || v > version:
		return nil, fmt.Errorf("%w: it is %d, this kvdemo reads %d to %d; use the kvdemo that wrote it", errVersion, v, oldestVersion, version)
	case v == oldestVersion:
		b.types = kv.TypeString
	default:
		b.types = kv.TypeSortedSet
	}
	n, err := b.uvarint("length of the header", maxHeaderBytes)
	if err != nil {
		return nil, err
	}
	text := make([]byte, n)
	if err := b.read(text); err != nil {
		return nil, err
	}
	if err := json.Unmarshal(text, &b.Header); err != nil {
		return nil, b.bad("header: %v", err)
	}
	return b, nil
}

func (r *Reader) bad(what string, args ...any) error {
	return fmt.Errorf("%w: at byte %d: %s", errDamaged, r.at, fmt.Sprintf(what, args...))
}

// read fills b.
func (r *Reader) read(b []byte) error {
	n, err := io.ReadFull(r.r, b)
	r.at += int64(n)
	_, _ = r.file.Write(b[:n]) // a hash.Hash never fails
	_, _ = r.entry.Write(b[:n])
	if errors.Is(err, io.EOF) || errors.Is(err, io.ErrUnexpectedEOF) {
		return r.bad("it ends early")
	}
	return err
}

// ReadByte implements io.ByteReader for binary.ReadUvarint.
func (r *Reader) ReadByte() (byte, error) {
	var b [1]byte
	err := r.read(b[:])
	return b[0], err
}

func (r *Reader) uvarint(of string, limit uint64) (uint64, error) {
	v, err := binary.ReadUvarint(r)
	switch {
	case err != nil && !errors.Is(err, errDamaged):
		return 0, r.bad("%s: %v", of, err)
	case err != nil:
		return 0, err
	case v > limit:
		return 0, r.bad("%s: %d, want at most %d", of, v, limit)
	}
	return v, nil
}

// Next returns the next entry, or io.EOF once the whole file was read and is what was
// written. What is left of the value before is read first.
func (r *Reader) Next() (e Entry, err error) {
	if r.last {
		return e, io.EOF
	}
	if _, err := io.Copy(io.Discard, r); err != nil {
		return e, err
	}
	r.entry.Reset()
	mark, err := r.ReadByte()
	switch {
	case err != nil:
		return e, err
	case mark == endMark:
		return e, r.end()
	case kv.Type(mark) > r.types:
		return e, r.bad("mark %d, want %d to %d", mark, endMark, r.types)
	}
	n, err := r.uvarint("length of a key", kv.MaxKeyBytes)
	if err != nil {
		return e, err
	}
	key := make([]byte, n)
	if err := r.read(key); err != nil {
		return e, err
	}
	size, err := r.uvarint("size of a value", kv.MaxValueBytes)
	if err != nil {
		return e, err
	}
	deadline, err := r.uvarint("deadline", uint64(kv.MaxDeadline))
	r.left, r.open = int64(size), true
	r.count++
	return Entry{Key: string(key), Size: int64(size), Deadline: int64(deadline), Type: kv.Type(mark)}, err
}

// Read implements io.Reader: it reads the value of the entry up to io.EOF, which says
// that the entry is what was written.
func (r *Reader) Read(b []byte) (int, error) {
	if r.left > 0 {
		b = b[:min(int64(len(b)), r.left)]
		if err := r.read(b); err != nil {
			return 0, err
		}
		r.left -= int64(len(b))
		return len(b), nil
	}
	if !r.open {
		return 0, io.EOF
	}
	r.open = false
	got := r.entry.Sum32()
	var sum [4]byte
	if err := r.read(sum[:]); err != nil {
		return 0, err
	}
	if want := binary.BigEndian.Uint32(sum[:]); got != want {
		return 0, r.bad("entry %d has checksum %08x, want %08x", r.count, got, want)
	}
	return 0, io.EOF
}

// end compares what ends the file.
func (r *Reader) end() error {
	var count [8]byte
	if err := r.read(count[:]); err != nil {
		return err
	}
	if n := binary.BigEndian.Uint64(count[:]); n != r.count {
		return r.bad("it has %d entries, announced are %d", r.count, n)
	}
	got := r.file.Sum(nil)
	want := make([]byte, len(got))
	if err := r.read(want); err != nil {
		return err
	}
	if string(got) != string(want) {
		return r.bad("its SHA-256 is %x, want %x", got, want)
	}
	if _, err := r.r.ReadByte(); !errors.Is(err, io.EOF) {
		return r.bad("bytes follow its end")
	}
	r.last = true
	return io.EOF
}

// Check reads a whole backup, and returns how many entries it has.
func Check(in io.Reader) (h Header, entries uint64, err error) {
	r, err := NewReader(in)
	if err != nil {
		return h, 0, err
	}
	for err == nil {
		_, err = r.Next()
	}
	if errors.Is(err, io.EOF) {
		err = nil
	}
	return r.Header, r.count, err
}
