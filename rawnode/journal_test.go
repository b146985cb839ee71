// Copyright 2026 The Weft Authors
// SPDX-License-Identifier: Apache-2.0

package rawnode

import (
	"errors"
	"io"
	"strings"
)

// journal is a StateMachine that joins its commands, and cannot write snapshots.
type journal struct {
	index uint64
	host  []byte
	text  strings.Builder
}

func (j *journal) Load() (uint64, []byte, error) { return j.index, j.host, nil }
func (j *journal) Durable() (uint64, error)      { return j.index, nil }
func (j *journal) Snapshot() (Snapshot, error)   { return nil, errors.New("a journal has none") }

func (j *journal) Apply(b Batch) ([]any, error) {
	j.index = b.Index
	if b.Host != nil {
		j.host = b.Host
	}
	results := make([]any, len(b.Commands))
	for i, c := range b.Commands {
		j.text.Write(c)
		results[i] = j.text.Len()
	}
	return results, nil
}

func (j *journal) Restore(meta SnapshotMeta, body io.Reader) error {
	j.text.Reset()
	if _, err := io.Copy(&j.text, body); err != nil {
		return err
	}
	j.index, j.host = meta.Index, meta.Host
	return nil
}
