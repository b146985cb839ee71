// Copyright 2026 The Weft Authors
// SPDX-License-Identifier: Apache-2.0

package main

import (
	"encoding/json"
	"errors"
	"io"
	"log"
	"unicode/utf8"
)

// words is the state: how often each word was said.
type words map[string]int

func newWords() words { return words{} }

// Apply changes the state by a command. All replicas come to the same.
func (w words) Apply(command []byte) any {
	if !utf8.Valid(command) { // Write would change such a word
		return errors.New("the word is not UTF-8")
	}
	w[string(command)]++
	return w[string(command)]
}

// Write writes the state.
func (w words) Write(to io.Writer) error { return json.NewEncoder(to).Encode(w) }

// Read fills an empty state.
func (w words) Read(from io.Reader) error { return json.NewDecoder(from).Decode(&w) }

func must[T any](v T, err error) T {
	check(err)
	return v
}

func check(err error) {
	if err != nil {
		log.Fatal(err)
	}
}
