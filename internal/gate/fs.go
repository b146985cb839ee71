// Copyright 2026 The Weft Authors
// SPDX-License-Identifier: Apache-2.0

package gate

import (
	"io"
	"os"

	"github.com/cockroachdb/pebble/v2/vfs"
)

// FS returns a file system of which all that changes the disk passes the gate. Its Lock
// locks nothing: that is left to the owner of the directory, which gives it back also
// when Pebble cannot be closed.
func (g *Gate) FS(fs vfs.FS) vfs.FS { return gateFS{fs, g} }

// gateFS passes what changes the disk through a gate. Reads pass beside it.
//
// What may be tried again when there is no room: to make a file or directory,
// to rename or link one (they happen or do not), and to write on (what a write
// did not take is written behind what it took). A sync is never tried again: a
// system may drop what it could not write, and call the next sync a success.
type gateFS struct {
	vfs.FS
	gate *Gate
}

// opened passes the writes of a file through the gate.
func (fs gateFS) opened(name string, open func() (vfs.File, error)) (vfs.File, error) {
	var f vfs.File
	err := fs.gate.do("open "+name, func() (err error) {
		f, err = open()
		return err
	})
	if err != nil {
		return nil, err
	}
	return &gateFile{File: f, name: name, gate: fs.gate}, nil
}

func (fs gateFS) Create(name string, c vfs.DiskWriteCategory) (vfs.File, error) {
	return fs.opened(name, func() (vfs.File, error) { return fs.FS.Create(name, c) })
}

func (fs gateFS) OpenReadWrite(name string, c vfs.DiskWriteCategory, opts ...vfs.OpenOption) (vfs.File, error) {
	return fs.opened(name, func() (vfs.File, error) { return fs.FS.OpenReadWrite(name, c, opts...) })
}

func (fs gateFS) ReuseForWrite(oldname, newname string, c vfs.DiskWriteCategory) (vfs.File, error) {
	return fs.opened(newname, func() (vfs.File, error) { return fs.FS.ReuseForWrite(oldname, newname, c) })
}

func (fs gateFS) OpenDir(name string) (vfs.File, error) {
	f, err := fs.FS.OpenDir(name)
	if err != nil {
		return nil, err
	}
	return &gateFile{File: f, name: name, gate: fs.gate}, nil
}

func (fs gateFS) Link(oldname, newname string) error {
	return fs.gate.do("link "+newname, func() error { return fs.FS.Link(oldname, newname) })
}

func (fs gateFS) Rename(oldname, newname string) error {
	return fs.gate.do("rename "+newname, func() error { return fs.FS.Rename(oldname, newname) })
}

func (fs gateFS) MkdirAll(dir string, perm os.FileMode) error {
	return fs.gate.do("make "+dir, func() error { return fs.FS.MkdirAll(dir, perm) })
}

func (fs gateFS) Remove(name string) error {
	return fs.gate.do("remove "+name, func() error { return fs.FS.Remove(name) })
}

func (fs gateFS) RemoveAll(name string) error {
	return fs.gate.do("remove "+name, func() error { return fs.FS.RemoveAll(name) })
}

// Lock implements vfs.FS: see Gate.FS.
func (fs gateFS) Lock(string) (io.Closer, error) { return io.NopCloser(nil), nil }

func (fs gateFS) Unwrap() vfs.FS { return fs.FS }

type gateFile struct {
	vfs.File
	name string
	gate *Gate
}

func (f *gateFile) Write(p []byte) (int, error) {
	return f.all(func(n int) (int, error) { return f.File.Write(p[n:]) })
}

func (f *gateFile) WriteAt(p []byte, off int64) (int, error) {
	return f.all(func(n int) (int, error) { return f.File.WriteAt(p[n:], off+int64(n)) })
}

// all writes what is left behind n bytes, again and again.
func (f *gateFile) all(write func(n int) (int, error)) (n int, err error) {
	err = f.gate.do("write "+f.name, func() error {
		m, err := write(n)
		n += m
		f.gate.written.Add(uint64(m))
		return err
	})
	return n, err
}

// Preallocate only helps: if it fails, the writes that follow say what is wrong.
func (f *gateFile) Preallocate(offset, length int64) error {
	_ = f.gate.once(func() error { return f.File.Preallocate(offset, length) })
	return nil
}

func (f *gateFile) Sync() error     { return f.gate.try("sync "+f.name, f.File.Sync) }
func (f *gateFile) SyncData() error { return f.gate.try("sync "+f.name, f.File.SyncData) }

func (f *gateFile) SyncTo(length int64) (full bool, err error) {
	err = f.gate.try("sync "+f.name, func() (err error) {
		full, err = f.File.SyncTo(length)
		return err
	})
	return full, err
}
