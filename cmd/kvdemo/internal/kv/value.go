// Copyright 2026 The Weft Authors
// SPDX-License-Identifier: Apache-2.0

package kv

import (
	"bytes"
	"crypto/sha256"
	"errors"
	"fmt"
	"hash"
	"io"

	"github.com/cockroachdb/pebble/v2"
)

// Value is an open value, as it was when it was opened: later writes do not change its
// bytes. Close it soon, as what it refers to stays on disk until then. It is for one
// goroutine at a time.
type Value struct {
	Size    int64
	SHA256  []byte // nil unless the value came in parts
	Applied uint64 // log index of a state that the value is not older than

	pieces
	view *view // that they are read from; closed with them
}

// Value opens a key's value, of any size.
func (s *Store) Value(key string) (*Value, error) {
	if err := CheckKey(key); err != nil {
		return nil, err
	}
	inline, applied, err := s.Get(key)
	if err == nil {
		return &Value{Size: int64(len(inline)), Applied: applied, pieces: pieces{inline: inline}}, nil
	}
	if !errors.Is(err, ErrLarge) {
		return nil, err
	}
	v, err := s.view()
	if err != nil {
		return nil, err
	}
	value, err := v.value(key)
	if err != nil {
		return nil, errors.Join(err, v.close())
	}
	return value, nil
}

// value opens a value that was large a moment ago.
func (v *view) value(key string) (*Value, error) {
	b, err := v.now.get(v.space.key(secData, []byte(key)))
	if err != nil {
		return nil, err
	}
	if b == nil {
		return nil, fmt.Errorf("%w: %q", ErrNotFound, key)
	}
	r, err := openRecord([]byte(key), b)
	if err == nil && r.kind > kindLarge {
		err = fmt.Errorf("%w: key %q has a %v; read it with a client of Redis", ErrType, key, typeOf(b))
	}
	if err != nil {
		return nil, err
	}
	value := &Value{Size: r.size(), Applied: v.applied, view: v}
	if r.large != nil {
		value.SHA256 = r.large.sha256[:]
	}
	value.pieces, err = v.pieces(r)
	return value, err
}

// pieces are those of a value.
type pieces struct {
	inline []byte // until Next returned it
	stored pieceReader
}

// pieceReader reads what stands beside the record: the parts of a large value, or the members of a sorted set.
type pieceReader interface {
	next() ([]byte, error)
	close() error
}

func (v *view) pieces(r record) (p pieces, err error) {
	switch {
	case r.sorted != nil:
		p.stored, err = v.members(r.sorted)
	case r.large != nil:
		p.stored, err = v.parts(*r.large)
	default:
		p.inline = r.value
	}
	return p, err
}

// Next returns the next piece of the value, at most PartBytes, valid until the
// next call; after the last one io.EOF. What is returned is what was put: with
// anything else it ends with ErrDamaged. An empty value has one empty piece. The value of
// a hash is what ActHash returns, that of a sorted set what ActSortedRange would.
func (p *pieces) Next() ([]byte, error) {
	switch {
	case p.stored != nil:
		return p.stored.next()
	case p.inline == nil:
		return nil, io.EOF
	}
	b := p.inline
	p.inline = nil
	return b, nil
}

func (p *pieces) close() error {
	if p.stored == nil {
		return nil
	}
	return p.stored.close()
}

// Close gives the value free. Closing twice does no harm.
func (v *Value) Close() error {
	err := v.pieces.close()
	if v.view != nil {
		err = errors.Join(err, v.view.close())
	}
	v.pieces, v.view = pieces{}, nil
	return err
}

// parts reads the parts of a large value one after the other.
type parts struct {
	large large
	it    *pebble.Iterator
	i     int // the next part
	hash  hash.Hash
	err   error // what ended it
}

func (v *view) parts(l large) (*parts, error) {
	lower := v.space.key(secPart, partName(l.number, 0))
	upper := v.space.key(secPart, partName(l.number, maxParts))
	it, err := v.now.iter(lower, upper)
	if err != nil {
		return nil, err
	}
	return &parts{large: l, it: it, hash: sha256.New()}, nil
}

func (p *parts) next() ([]byte, error) {
	if p.err != nil {
		return nil, p.err
	}
	b, err := p.read()
	if !errors.Is(err, io.EOF) {
		p.err = err
		return b, err
	}
	if got := p.hash.Sum(nil); !bytes.Equal(got, p.large.sha256[:]) {
		err = fmt.Errorf("%w: a value of %d bytes has SHA-256 %x, the client said %x", ErrDamaged, p.large.size, got, p.large.sha256)
	}
	p.err = err
	return b, err
}

// read returns the next part, or io.EOF when all have been read.
func (p *parts) read() ([]byte, error) {
	l := &p.large
	var more bool
	if p.i == 0 {
		more = p.it.First()
	} else {
		more = p.it.Next()
	}
	if err := p.it.Error(); err != nil {
		return nil, damage(err)
	}
	if count := partsOf(l.size); !more || p.i >= count {
		if more || p.i < count {
			return nil, fmt.Errorf("%w: upload %v has not just %d parts; part %d is at fault", ErrDamaged, l.upload, count, p.i)
		}
		return nil, io.EOF
	}
	if name := p.it.Key()[nameStart:]; !bytes.Equal(name, partName(l.number, p.i)) {
		return nil, fmt.Errorf("%w: part %d of upload %v is missing", ErrDamaged, p.i, l.upload)
	}
	b, err := p.it.ValueAndErr()
	if err != nil {
		return nil, damage(err)
	}
	data, err := openPart(l.upload, l.size, p.i, b)
	if err != nil {
		return nil, err
	}
	_, _ = p.hash.Write(data) // a hash.Hash never fails
	p.i++
	return data, nil
}

func (p *parts) close() error { return p.it.Close() }

// digest returns the SHA-256 of a large value's stored bytes, and does not trust the digest that the
// client sent.
func (v *view) digest(l large) ([]byte, error) {
	p, err := v.parts(l)
	if err != nil {
		return nil, err
	}
	for err == nil {
		_, err = p.read()
	}
	sum := p.hash.Sum(nil)
	if errors.Is(err, io.EOF) {
		err = nil
	}
	return sum, errors.Join(err, p.close())
}
