// Copyright 2026 The Weft Authors
// SPDX-License-Identifier: Apache-2.0

package world

import (
	"bytes"
	"errors"
	"fmt"

	"github.com/cockroachdb/pebble/v2/vfs"

	"github.com/weftraft/weft/internal/dirlock"
)

// Damage is a file with other bytes than were written and synced.
type Damage struct {
	d      *Disk
	whole  []byte
	Path   string
	Detail string // in words
}

// Damage flips a bit of a drawn file or cuts off the file's end, while no process
// uses the disk. The result is nil if there is no file.
func (d *Disk) Damage() (*Damage, error) {
	all := d.paths(d.files)
	if len(all) == 0 {
		return nil, nil
	}
	x := &Damage{d: d, Path: Pick(d.draws, all...)}
	var err error
	if x.whole, err = readFile(d.files, x.Path); err != nil {
		return nil, err
	}
	used := len(bytes.TrimRight(x.whole, "\x00")) // the rest is room that was asked for
	if used == 0 {
		return nil, nil
	}
	b := bytes.Clone(x.whole)
	if bit := d.draws.IntN(8 * used); d.draws.Chance(0.5) {
		b[bit/8] ^= 1 << (bit % 8)
		x.Detail = fmt.Sprintf("bit %d of byte %d of %s flipped", bit%8, bit/8, x.Path)
	} else {
		b = b[:bit/8]
		x.Detail = fmt.Sprintf("%s cut from %d bytes to %d", x.Path, len(x.whole), len(b))
	}
	return x, d.replace(x.Path, b)
}

// Repair gives the file its bytes again, while no process uses the disk. A file
// that is gone stays away.
func (x *Damage) Repair() error {
	if _, err := x.d.files.Stat(x.Path); err != nil {
		return nil
	}
	return x.d.replace(x.Path, x.whole)
}

// replace replaces a file, durably.
func (d *Disk) replace(path string, content []byte) error {
	f, err := d.files.Create(path, vfs.WriteCategoryUnspecified)
	if err != nil {
		return err
	}
	_, err = f.Write(content)
	if err = errors.Join(err, f.Sync(), f.Close()); err != nil {
		return err
	}
	return dirlock.Sync(d.files, d.files.PathDir(path))
}

// Copy returns a copy of the files, without faults.
func (d *Disk) Copy() vfs.FS { return d.clone() }
