// Copyright 2026 The Weft Authors
// SPDX-License-Identifier: Apache-2.0

package bench

import (
	"bytes"
	"crypto/sha256"
	"encoding/hex"
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"io/fs"
	"os"
	"runtime"
	"time"

	"github.com/weftraft/weft/internal/lab"
)

// Circumstances are the common conditions of all rows in a table.
type Circumstances struct {
	Rounds   int               `json:"rounds"`
	Warm     time.Duration     `json:"warm_ns"`
	Time     time.Duration     `json:"time_ns"`
	Others   float64           `json:"others"`
	Network  string            `json:"network"` // a kind of [lab.Network]
	CPU      string            `json:"cpu"`
	CPUs     int               `json:"cpus"`
	Go       string            `json:"go"`
	System   string            `json:"system"`
	Programs map[string]string `json:"programs_sha256"` // by side
}

// Circumstances returns the circumstances of a configuration on this machine, on a kind of network.
func (c Config) Circumstances(network string) (Circumstances, error) {
	at := Circumstances{
		Rounds: c.Rounds, Warm: c.Warm, Time: c.Time, Others: c.Others, Network: network, CPU: lab.CPUModel(), CPUs: runtime.NumCPU(),
		Go: runtime.Version(), System: runtime.GOOS + "/" + runtime.GOARCH, Programs: map[string]string{},
	}
	for _, s := range c.Sides {
		data, err := os.ReadFile(s.Program)
		if err != nil {
			return at, err
		}
		sum := sha256.Sum256(data)
		at.Programs[s.Name] = hex.EncodeToString(sum[:])
	}
	return at, nil
}

// Store keeps rows in a file of JSON lines, the circumstances first, so that several runs can make
// a table together, and no row is lost when a run breaks off.
type Store struct {
	At   Circumstances
	Rows []*Row
	path string // empty: rows are kept in memory only
}

// errOther is returned for a file whose rows were measured under other circumstances.
var errOther = errors.New("its rows were measured under other circumstances; name another file, or remove it")

// OpenStore reads the rows in a file, and creates a missing file. Without a path, OpenStore reads
// nothing, and rows stay in memory.
func OpenStore(path string, at Circumstances) (*Store, error) {
	s := &Store{At: at, path: path}
	if path == "" {
		return s, nil
	}
	first, err := json.Marshal(at)
	if err != nil {
		return nil, err
	}
	data, err := os.ReadFile(path)
	if errors.Is(err, fs.ErrNotExist) {
		return s, os.WriteFile(path, append(first, '\n'), 0o644)
	}
	if err != nil {
		return nil, err
	}
	if whole := bytes.LastIndexByte(data, '\n') + 1; whole < len(data) {
		// A run that broke off has left a part of a line.
		data = data[:whole]
		if err := os.Truncate(path, int64(whole)); err != nil {
			return nil, err
		}
	}
	head, rest, _ := bytes.Cut(data, []byte("\n"))
	if !bytes.Equal(head, first) {
		return nil, fmt.Errorf("%s: %w: they were %s, and are %s", path, errOther, head, first)
	}
	for d := json.NewDecoder(bytes.NewReader(rest)); ; {
		var r Row
		if err := d.Decode(&r); errors.Is(err, io.EOF) {
			return s, nil
		} else if err != nil {
			return nil, fmt.Errorf("%s: row %d: %w", path, len(s.Rows)+1, err)
		}
		s.Rows = append(s.Rows, &r)
	}
}

// Has reports whether there is a row of a load.
func (s *Store) Has(l Load) bool { return s.row(l) != nil }

func (s *Store) row(l Load) *Row {
	for _, r := range s.Rows {
		if r.Load == l {
			return r
		}
	}
	return nil
}

// Add keeps rows.
func (s *Store) Add(rows ...*Row) error {
	s.Rows = append(s.Rows, rows...)
	if s.path == "" {
		return nil
	}
	f, err := os.OpenFile(s.path, os.O_APPEND|os.O_WRONLY, 0)
	if err != nil {
		return err
	}
	for _, r := range rows {
		line, marshalErr := json.Marshal(r)
		_, writeErr := f.Write(append(line, '\n'))
		err = errors.Join(err, marshalErr, writeErr)
	}
	return errors.Join(err, f.Close())
}
