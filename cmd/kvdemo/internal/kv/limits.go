// Copyright 2026 The Weft Authors
// SPDX-License-Identifier: Apache-2.0

package kv

import (
	"errors"
	"fmt"
	"unicode/utf8"

	"github.com/weftraft/weft/rawnode/session"
	"github.com/weftraft/weft/rawnode/state"
)

// Bounds on what a store takes, in bytes unless they say otherwise. They are
// part of the data format: all replicas must refuse the same commands.
const (
	MaxKeyBytes = 4 << 10
	// MaxInlineBytes is the largest value that one command can carry. A larger
	// one comes in parts.
	MaxInlineBytes = PartBytes
	// PartBytes is the length of each part of an upload but the last.
	PartBytes     = 1 << 20
	MaxValueBytes = maxParts * PartBytes
	// maxParts is counted in parts. An upload's set of parts is one word.
	maxParts = 64
	// MaxCommandBytes is the most that Command.Encode makes: a value, and
	// less than 8 KiB of key, names and numbers around it.
	MaxCommandBytes = MaxInlineBytes + 8<<10

	maxSystemKeyBytes   = 256
	maxSystemValueBytes = 64 << 10
	// maxSystemBytes bounds the system keys and values of a group together.
	maxSystemBytes = 1 << 20
	// maxSystemKeys is how many system keys a group can have.
	maxSystemKeys = 1024
)

// What becomes of uploads, counted in commands applied: the clock that all
// replicas share.
const (
	// maxUploads is how many can be under way in a group.
	maxUploads = 64
	// uploadLifetime: an upload that got no part for so long is dropped.
	uploadLifetime = 65_536
	// uploadPatience: when all are taken, one that was idle for so long makes
	// room for a new one.
	uploadPatience = 1024
)

// sessionLimits bound the sessions of a group.
var sessionLimits = session.Limits{Sessions: 10_000, Results: 16, ResultBytes: 8 << 10}

var (
	// ErrNotFound says that the key has no value.
	ErrNotFound = errors.New("no such key")

	// ErrLarge says that the value is above MaxInlineBytes: read it in parts,
	// with Store.Value.
	ErrLarge = errors.New("the value is large")

	// ErrInvalid wraps what is wrong with a key, value, page limit or command.
	ErrInvalid = errors.New("invalid")

	// ErrParts says that an upload was to be finished before all of its parts
	// were there.
	ErrParts = errors.New("parts of the upload are missing")

	// ErrNoUpload says that there is no upload of that id: none of its parts has
	// arrived, it was finished, or it was dropped after a long silence.
	ErrNoUpload = errors.New("no such upload")

	// ErrUploads says that too many uploads are under way.
	ErrUploads = errors.New("too many uploads are under way")

	// ErrOvertaken says that a later command of the session came first: this one
	// was not applied and never will be. It may be sent under a new number.
	ErrOvertaken = errors.New("a later command of the session came first")

	// ErrForgotten says that the session does not remember whether it applied
	// the command.
	ErrForgotten = errors.New("the session has forgotten the command")

	// ErrExpired says that the session is not known, or not any more: whether the
	// command was applied, is not known either.
	ErrExpired = errors.New("the session has expired")

	// ErrDamaged wraps what was found where stored bytes differ from what was
	// written: restore the node from a copy, or replace it.
	ErrDamaged = state.ErrDamaged

	// errSnapshot wraps what is wrong with a snapshot that was to be restored.
	// The state is as it was before.
	errSnapshot = errors.New("the snapshot is not usable")

	// ErrClosed says that the store is closed.
	ErrClosed = state.ErrClosed
)

// CheckKey returns nil, or ErrInvalid with what is wrong with the key.
func CheckKey(key string) error {
	if len(key) == 0 || len(key) > MaxKeyBytes || !utf8.ValidString(key) {
		return badKey([]byte(key))
	}
	return nil
}

// checkKey is CheckKey for bytes.
func checkKey(key []byte) error {
	if len(key) == 0 || len(key) > MaxKeyBytes || !utf8.Valid(key) {
		return badKey(key)
	}
	return nil
}

func badKey(key []byte) error {
	switch {
	case len(key) == 0:
		return fmt.Errorf("%w key: it is empty, want 1 to %d bytes", ErrInvalid, MaxKeyBytes)
	case len(key) > MaxKeyBytes:
		return fmt.Errorf("%w key: %d bytes, want 1 to %d", ErrInvalid, len(key), MaxKeyBytes)
	}
	return fmt.Errorf("%w key %q: not UTF-8; encode binary keys, for example in hexadecimal", ErrInvalid, key)
}

// CheckValue returns nil, or ErrInvalid if a value of so many bytes is too long.
func CheckValue(size int) error {
	if size > MaxValueBytes {
		return fmt.Errorf("%w value: %d bytes, want at most %d (%d MiB); split it over several keys", ErrInvalid, size, MaxValueBytes, MaxValueBytes>>20)
	}
	return nil
}

// partsOf returns how many parts an upload of so many bytes has.
func partsOf(size int64) int { return int((size + PartBytes - 1) / PartBytes) }

// partLen returns the length of a part of an upload.
func partLen(size int64, part int) int {
	return int(min(PartBytes, size-int64(part)*PartBytes))
}
