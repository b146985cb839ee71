// Copyright 2026 The Weft Authors
// SPDX-License-Identifier: Apache-2.0

package kv

import (
	"encoding/binary"
	"errors"
	"fmt"
)

// part stores a part of an upload; the first part that arrives begins the upload. A part
// that is there changes nothing: a client that got no answer sends a part again.
func (w *writer) part(p *parsed) (any, error) {
	u, refused, err := w.uploadFor(p)
	if refused != nil || err != nil {
		return Result{Err: refused}, err
	}
	bit, sum := uint64(1)<<p.part, binary.LittleEndian.Uint32(p.record)
	if u.have&bit != 0 {
		if u.sums[p.part] != sum {
			return Result{Err: fmt.Errorf("%w upload %v: part %d was %08x before, now it is %08x; use a new id for other bytes", ErrInvalid, u.id, p.part, u.sums[p.part], sum)}, nil
		}
		return resultOK, nil
	}
	u.have |= bit
	u.sums[p.part] = sum
	u.used = w.tables.position
	return resultOK, errors.Join(
		w.set(secPart, partName(u.number, p.part), p.record),
		w.set(secUpload, u.id[:], u.encode()),
	)
}

// uploadFor returns the upload that a part belongs to, or why it is refused.
func (w *writer) uploadFor(p *parsed) (u *upload, refused, err error) {
	t := w.tables
	u = t.uploads.byID[p.upload]
	switch {
	case u != nil && u.size != p.size:
		return nil, fmt.Errorf("%w upload %v: size %d, it began with %d", ErrInvalid, u.id, p.size, u.size), nil
	case u != nil:
		return u, nil, nil
	}
	if len(t.uploads.byID) >= maxUploads {
		idlest := t.uploads.idlest()
		if t.position-idlest.used < uploadPatience {
			return nil, fmt.Errorf("%w: %d; try again later", ErrUploads, maxUploads), nil
		}
		if err := w.dropUpload(idlest); err != nil {
			return nil, nil, err
		}
	}
	u = &upload{id: p.upload, number: t.position, size: p.size, used: t.position}
	t.uploads.byID[u.id] = u
	t.uploads.expiry = min(t.uploads.expiry, u.used+uploadLifetime)
	return u, nil, nil
}

// dropUpload removes an upload and its parts.
func (w *writer) dropUpload(u *upload) error {
	delete(w.tables.uploads.byID, u.id)
	err := w.delete(secUpload, u.id[:])
	for _, i := range members(u.have) {
		err = errors.Join(err, w.delete(secPart, partName(u.number, i)))
	}
	return err
}

// expire drops uploads whose time has come, and finds out when the next one's
// will.
func (w *writer) expire() error {
	t := w.tables
	t.uploads.expiry = ^uint64(0)
	var err error
	for _, u := range t.uploads.byID {
		if t.position > u.used+uploadLifetime {
			// In any order: each writes keys of its own.
			err = errors.Join(err, w.dropUpload(u))
		} else {
			t.uploads.expiry = min(t.uploads.expiry, u.used+uploadLifetime)
		}
	}
	return err
}

// finishUpload makes an upload the value of a key. Its parts stay where they
// are.
func (w *writer) finishUpload(p *parsed) (any, error) {
	t := w.tables
	u := t.uploads.byID[p.upload]
	if u == nil {
		return Result{Err: fmt.Errorf("%w: %v", ErrNoUpload, p.upload)}, nil
	}
	if u.size != p.size {
		return Result{Err: fmt.Errorf("%w upload %v: size %d, it began with %d", ErrInvalid, u.id, p.size, u.size)}, nil
	}
	if parts := members(u.all() &^ u.have); len(parts) > 0 {
		return Result{Err: missing(parts), Missing: parts}, nil
	}
	l := large{number: u.number, size: u.size, upload: u.id, sha256: [32]byte(p.sha256)}
	delete(t.uploads.byID, u.id)
	err := errors.Join(w.delete(secUpload, u.id[:]), w.put(p.key, l.encode(p.key)))
	ref := largeRef{number: l.number, size: l.size}
	t.large[string(p.key)] = ref
	return w.done(false), errors.Join(err, w.set(secLarge, p.key, ref.encode()))
}
