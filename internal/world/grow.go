// Copyright 2026 The Weft Authors
// SPDX-License-Identifier: Apache-2.0

package world

import (
	"errors"
	"io"

	"github.com/cockroachdb/pebble/v2/vfs"
)

// growing is files in memory, each of which grows in one step. A MemFS has a file grow byte by
// byte up to where a write ends, and the log writes the last byte of all blocks that it is to
// need: a tenth of a simulator's time.
type growing struct{ *vfs.MemFS }

// OpenReadWrite implements vfs.FS. The log opens no file for writing in another way.
func (g growing) OpenReadWrite(name string, c vfs.DiskWriteCategory, opts ...vfs.OpenOption) (vfs.File, error) {
	f, err := g.MemFS.OpenReadWrite(name, c, opts...)
	if err != nil {
		return nil, err
	}
	return growingFile{f}, nil
}

// growingFile is a file of which nobody uses the position, beside WriteAt.
type growingFile struct{ vfs.File }

// WriteAt implements vfs.File.
func (f growingFile) WriteAt(p []byte, at int64) (int, error) {
	info, err := f.Stat()
	if err != nil {
		return 0, err
	}
	if hole := at - info.Size(); hole > 0 {
		_, toEnd := io.Copy(io.Discard, f.File)
		_, grown := f.Write(make([]byte, hole))
		if err := errors.Join(toEnd, grown); err != nil {
			return 0, err
		}
	}
	return f.File.WriteAt(p, at)
}
