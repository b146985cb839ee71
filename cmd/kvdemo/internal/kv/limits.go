// Copyright 2026 The Weft Authors
// SPDX-License-Identifier: Apache-2.0

package kv

import (
	"errors"
	"fmt"
	"unicode/utf8"
)

// Bounds on what a store takes, in bytes.
const (
	MaxKeyBytes   = 4 << 10
	MaxValueBytes = 4 << 20
)

var (
	// ErrNotFound says that the key has no value.
	ErrNotFound = errors.New("no such key")

	// ErrInvalid wraps what is wrong with a key, value, page limit or command.
	ErrInvalid = errors.New("invalid")

	// ErrDamaged wraps what was found where stored bytes differ from what was
	// written: restore the node from a copy, or replace it.
	ErrDamaged = errors.New("the stored state is damaged")

	// ErrSnapshot wraps what is wrong with a snapshot that was to be restored.
	// The state is as it was before.
	ErrSnapshot = errors.New("the snapshot is not usable")

	// ErrIdentity says that the directory holds the state of another node.
	ErrIdentity = errors.New("the state belongs to another node")

	// ErrVersion says that the directory was written by a newer kvdemo.
	ErrVersion = errors.New("the state has an unknown format version")

	// ErrClosed says that the store is closed.
	ErrClosed = errors.New("the store is closed")
)

// CheckKey returns nil, or ErrInvalid with what is wrong with the key.
func CheckKey(key string) error {
	switch {
	case key == "":
		return fmt.Errorf("%w key: it is empty, want 1 to %d bytes", ErrInvalid, MaxKeyBytes)
	case len(key) > MaxKeyBytes:
		return fmt.Errorf("%w key: %d bytes, want 1 to %d", ErrInvalid, len(key), MaxKeyBytes)
	case !utf8.ValidString(key):
		return fmt.Errorf("%w key %q: not UTF-8; encode binary keys, for example in hexadecimal", ErrInvalid, key)
	}
	return nil
}

// CheckValue returns nil, or ErrInvalid if a value of so many bytes is too long.
func CheckValue(size int) error {
	if size > MaxValueBytes {
		return fmt.Errorf("%w value: %d bytes, want at most %d (4 MiB); split it over several keys", ErrInvalid, size, MaxValueBytes)
	}
	return nil
}
