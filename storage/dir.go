// Copyright 2026 The Weft Authors
// SPDX-License-Identifier: Apache-2.0

package storage

import (
	"crypto/rand"
	"encoding/binary"
	"errors"
	"fmt"
	"hash/crc32"
	"io"
	"os"
	"slices"
	"strconv"
	"strings"
	"sync/atomic"

	"github.com/cockroachdb/pebble/v2/vfs"

	"github.com/weftraft/weft/internal/dirlock"
)

const (
	formatVersion  = 1 // of the directory
	segmentVersion = 2 // of segments: 2 brought indexes
	identityName   = "IDENTITY"
	segmentSuffix  = ".seg"
	spareSuffix    = ".spare"
	maxIdentityLen = 4096
)

// A node waits for the engine's writes; the file system may count these apart from
// others.
const diskCategory = vfs.WriteCategoryUnspecified

// directory is the files of an engine: their names, their owner, and the order of their
// creation and removal.
type directory struct {
	fs   vfs.FS
	path string
	lock io.Closer
	dir  vfs.File // open for syncing entries
	sum  checksum

	// spares are files for new segments, used in order: former segments, whose blocks
	// the file system need not prepare again, and then perhaps a file prepared as a
	// spare.
	spares     []spare
	spareBytes atomic.Int64
}

// spare is a file kept, or prepared, for a later segment.
type spare struct {
	number uint64 // in its name: the former segment's, or 0
	bytes  int64
	used   bool // a former segment
}

// openDirectory locks the directory and compares its identity, and first makes either
// if missing.
func openDirectory(path string, o Options) (_ *directory, err error) {
	fs, id := o.FS, o.Identity
	d := &directory{fs: fs, path: path}
	defer func() {
		if err != nil {
			_ = d.close() // the first error is the one to report
			err = d.full(err)
		}
	}()
	if err := dirlock.Make(fs, path); err != nil {
		return nil, fmt.Errorf("storage: making directory %s: %w", path, err)
	}
	if d.lock, err = dirlock.Take(fs, path); err != nil {
		return nil, fmt.Errorf("%w: %s: %w; stop the other process or give this node a directory of its own", ErrLocked, path, err)
	}
	if d.dir, err = fs.OpenDir(path); err != nil {
		return nil, fmt.Errorf("storage: opening directory %s: %w", path, err)
	}
	if segments, err := d.segments(); err != nil {
		return nil, err
	} else if o.Begun && len(segments) == 0 {
		return nil, fmt.Errorf("storage: open %s: %w", path, &DamageError{Segment: 1, Offset: -1, Reason: "no segment is left of the log that was here (is its disk mounted?)"})
	}
	salt, err := d.readIdentity(id)
	if errors.Is(err, os.ErrNotExist) {
		salt, err = d.writeIdentity(id)
	} else if err == nil {
		// An earlier process may have been killed before it had synced a name. A later name must not
		// survive a power failure that the earlier one does not.
		if err = d.dir.Sync(); err != nil {
			err = failedSync{fmt.Errorf("storage: syncing directory %s: %w", path, err)}
		}
	}
	if err != nil {
		return nil, err
	}
	d.sum = newChecksum(salt)
	return d, d.findSpares()
}

func (d *directory) join(name string) string { return d.fs.PathJoin(d.path, name) }

func (d *directory) close() error {
	var errs []error
	if d.dir != nil {
		errs = append(errs, d.dir.Close())
	}
	if d.lock != nil {
		errs = append(errs, d.lock.Close())
	}
	return errors.Join(errs...)
}

// The identity file is text, so that an operator can read the log's owner. The last
// line is a checksum of the lines before.
func identityText(id Identity, salt uint64) string {
	body := fmt.Sprintf("weft log\nversion %d\ncluster %d\nnode %d\nsalt %016x\n", formatVersion, id.Cluster, id.Node, salt)
	return fmt.Sprintf("%scrc %08x\n", body, crc32.Checksum([]byte(body), castagnoli))
}

// writeIdentity makes the identity file of a new directory.
func (d *directory) writeIdentity(id Identity) (salt uint64, err error) {
	segments, err := d.segments()
	if err != nil {
		return 0, err
	}
	if len(segments) > 0 {
		return 0, &DamageError{Segment: segments[0], Offset: -1,
			Reason: fmt.Sprintf("the directory has segments, but no file %s", identityName)}
	}
	var b [8]byte
	_, _ = rand.Read(b[:]) // never fails
	salt = binary.LittleEndian.Uint64(b[:])
	// A rename makes the file appear whole or not at all.
	temp := d.join(identityName + ".tmp")
	f, err := d.fs.Create(temp, diskCategory)
	if err != nil {
		return 0, fmt.Errorf("storage: creating %s: %w", temp, err)
	}
	_, err = f.Write([]byte(identityText(id, salt)))
	if err == nil {
		err = f.Sync()
	}
	if err = errors.Join(err, f.Close()); err == nil {
		err = d.fs.Rename(temp, d.join(identityName))
	}
	if err == nil {
		err = d.dir.Sync()
	}
	if err != nil {
		return 0, fmt.Errorf("storage: writing %s: %w", identityName, err)
	}
	return salt, nil
}

// readIdentity reads the identity file and compares it with id.
func (d *directory) readIdentity(id Identity) (salt uint64, err error) {
	f, err := d.fs.Open(d.join(identityName))
	if err != nil {
		return 0, err
	}
	text, err := io.ReadAll(io.LimitReader(f, maxIdentityLen))
	if err = errors.Join(err, f.Close()); err != nil {
		return 0, fmt.Errorf("storage: reading %s: %w", identityName, err)
	}
	var version, crc uint64
	var have Identity
	if _, err := fmt.Sscanf(string(text), "weft log\nversion %d\n", &version); err == nil && version > formatVersion {
		return 0, fmt.Errorf("%w: %s has version %d, this program reads up to %d; run a newer program", ErrVersion, d.path, version, formatVersion)
	}
	_, err = fmt.Sscanf(string(text), "weft log\nversion %d\ncluster %d\nnode %d\nsalt %x\ncrc %x\n",
		&version, &have.Cluster, &have.Node, &salt, &crc)
	if err != nil || string(text) != identityText(have, salt) {
		return 0, &DamageError{Offset: -1, Reason: fmt.Sprintf("file %s does not hold what was written", identityName)}
	}
	if have != id {
		return 0, fmt.Errorf("%w: %s is of %v, this node is %v; give each node its own directory", ErrIdentity, d.path, have, id)
	}
	return salt, nil
}

func segmentName(number uint64) string { return fmt.Sprintf("%016x%s", number, segmentSuffix) }

// segments returns the numbers of the segment files, ascending.
func (d *directory) segments() ([]uint64, error) { return d.numbered(segmentSuffix) }

// numbered returns the numbers in the names of files with the suffix, ascending.
func (d *directory) numbered(suffix string) ([]uint64, error) {
	names, err := d.fs.List(d.path)
	if err != nil {
		return nil, fmt.Errorf("storage: listing %s: %w", d.path, err)
	}
	var numbers []uint64
	for _, name := range names {
		hex, ok := strings.CutSuffix(name, suffix)
		if !ok || len(hex) != 16 {
			continue
		}
		if n, err := strconv.ParseUint(hex, 16, 64); err == nil {
			numbers = append(numbers, n)
		}
	}
	slices.Sort(numbers)
	return numbers, nil
}

func (d *directory) spareName(number uint64) string {
	return d.join(fmt.Sprintf("%016x%s", number, spareSuffix))
}

// findSpares collects the spares of earlier engines.
func (d *directory) findSpares() error {
	numbers, err := d.numbered(spareSuffix)
	if err != nil {
		return err
	}
	for _, n := range numbers {
		info, err := d.fs.Stat(d.spareName(n))
		if err != nil {
			return fmt.Errorf("storage: reading the size of spare file %d: %w", n, err)
		}
		d.addSpare(spare{number: n, bytes: info.Size(), used: true})
	}
	return nil
}

func (d *directory) addSpare(s spare) {
	at := len(d.spares)
	if s.used {
		at = d.usedSpares()
	}
	d.spares = slices.Insert(d.spares, at, s)
	d.spareBytes.Add(s.bytes)
}

func (d *directory) usedSpares() (n int) {
	for n < len(d.spares) && d.spares[n].used {
		n++
	}
	return n
}

// create makes the file of a new segment, out of a spare one if there is any, and syncs
// the directory: frames go only into files that survive a crash. After a lack of room a
// further call goes on where the last one stopped.
func (d *directory) create(number uint64) (f vfs.File, bytes int64, recycled bool, err error) {
	name, fresh := d.join(segmentName(number)), false
	if len(d.spares) > 0 {
		s := d.spares[0]
		if err := d.fs.Rename(d.spareName(s.number), name); err != nil {
			return nil, 0, false, fmt.Errorf("storage: making spare file %d segment %d: %w", s.number, number, err)
		}
		d.spares = d.spares[1:]
		d.spareBytes.Add(-s.bytes)
		fresh = !s.used
	}
	if f, err = d.fs.OpenReadWrite(name, diskCategory); err != nil {
		return nil, 0, false, fmt.Errorf("storage: creating segment %d: %w", number, err)
	}
	info, err := f.Stat()
	if err != nil {
		_ = f.Close() // the first error is the one to report
		return nil, 0, false, fmt.Errorf("storage: reading the size of segment %d: %w", number, err)
	}
	if err := d.dir.Sync(); err != nil {
		_ = f.Close() // the first error is the one to report
		return nil, 0, false, failedSync{fmt.Errorf("storage: syncing the name of segment %d: %w", number, err)}
	}
	return f, info.Size(), info.Size() > 0 && !fresh, nil
}

// prepare makes a spare file of full size, with blocks of its own. At most one prepared
// file exists.
func (d *directory) prepare(allocate func(f vfs.File) error, bytes int64) error {
	name := d.spareName(0)
	f, err := d.fs.OpenReadWrite(name, diskCategory)
	if err == nil {
		if err = errors.Join(allocate(f), f.Close()); err != nil {
			_ = d.fs.Remove(name) // frees room for others; the file is made again later
		}
	}
	if err != nil {
		return fmt.Errorf("storage: making a spare file: %w", err)
	}
	d.addSpare(spare{bytes: bytes})
	return nil
}

// remove takes a segment file away, or keeps it as a spare. The directory is synced
// before the next removal, so that segments on disk always have consecutive numbers,
// and a gap in the numbers means a lost file.
func (d *directory) remove(number uint64, bytes int64, spares int) error {
	name := d.join(segmentName(number))
	// A power failure may have left a spare of this number beside the segment.
	keep := d.usedSpares() < spares && !slices.ContainsFunc(d.spares, func(s spare) bool { return s.number == number })
	var err error
	if keep {
		err = d.fs.Rename(name, d.spareName(number))
	} else {
		err = d.fs.Remove(name)
	}
	if err != nil {
		return fmt.Errorf("storage: removing segment %d: %w", number, err)
	}
	if err := d.dir.Sync(); err != nil {
		return failedSync{fmt.Errorf("storage: syncing the directory without segment %d: %w", number, err)}
	}
	if keep {
		d.addSpare(spare{number: number, bytes: bytes, used: true})
	}
	return nil
}
