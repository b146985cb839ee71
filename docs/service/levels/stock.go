// Copyright 2026 The Weft Authors
// SPDX-License-Identifier: Apache-2.0

// Package levels is the state of docs/upgrading.md, in its second version: articles, and how many
// of each there are.
package levels

import (
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"strconv"
	"strings"
	"unicode/utf8"
)

// newest is the newest level that this program knows. In version 1 newest was 0.
const newest = 1

var (
	errUnknown = errors.New("unknown command") // the same text as in version 1
	errNone    = errors.New("there is none left")
)

// stock is the state. Level says what all replicas apply; JSON without level and sold is what
// version 1 writes and reads.
type stock struct {
	Level  int            `json:"level,omitempty"`
	Counts map[string]int `json:"counts"`
	Sold   int            `json:"sold,omitempty"` // from level 1 on
}

func newStock() *stock { return &stock{Counts: map[string]int{}} }

// Apply adds one of an article, takes one, or sells one, and returns how many there are.
func (s *stock) Apply(command []byte) any {
	op, name, _ := strings.Cut(string(command), " ")
	switch {
	case !utf8.ValidString(name):
		return errUnknown
	case op == "level":
		return s.raise(name)
	case op == "add":
		s.Counts[name]++
	case op == "take" && s.Level >= 1 && s.Counts[name] <= 0: // version 1 counts below 0
		return errNone
	case op == "take":
		s.Counts[name]--
	case op == "sell" && s.Level >= 1: // version 1 does not know the command
		s.Counts[name]--
		s.Sold++
	default:
		return errUnknown
	}
	return s.Counts[name]
}

// raise raises the level, which never falls.
func (s *stock) raise(to string) any {
	level, err := strconv.Atoi(to)
	if err != nil {
		return errUnknown
	}
	if level > newest { // a newer program has raised the level
		panic(fmt.Sprintf("the group is at level %d, and this program knows %d: start a newer program", level, newest))
	}
	s.Level = max(s.Level, level)
	return s.Level
}

func (s *stock) Write(w io.Writer) error  { return json.NewEncoder(w).Encode(s) }
func (s *stock) Digest(w io.Writer) error { return s.Write(w) }

// Read refuses a state above the levels that this program knows.
func (s *stock) Read(r io.Reader) error {
	if err := json.NewDecoder(r).Decode(s); err != nil {
		return err
	}
	if s.Level > newest {
		return fmt.Errorf("the state is at level %d, and this program knows %d: start a newer program", s.Level, newest)
	}
	return nil
}
