// Copyright 2026 The Weft Authors
// SPDX-License-Identifier: Apache-2.0

// Command three is the second program of docs/service.md: one of three nodes, which says a
// word. Start it three times, with --id 1, 2 and 3.
package main

import (
	"context"
	"encoding/json"
	"errors"
	"flag"
	"fmt"
	"io"
	"log"
	"os"
	"os/signal"
	"time"
	"unicode/utf8"

	"github.com/weftraft/weft"
)

// spoken is the state: how often each word was said.
type spoken map[string]int

func newSpoken() spoken { return spoken{} }

func (s spoken) Apply(command []byte) any {
	if !utf8.Valid(command) { // Write would change such a word
		return errors.New("the word is not UTF-8")
	}
	s[string(command)]++
	return s[string(command)]
}

func (s spoken) Write(w io.Writer) error { return json.NewEncoder(w).Encode(s) }
func (s spoken) Read(r io.Reader) error  { return json.NewDecoder(r).Decode(&s) }

// say says a word, and looks at all.
func say(ctx context.Context, words *weft.Replicated[spoken], word string) error {
	result, err := words.Propose(ctx, []byte(word))
	switch {
	case errors.Is(err, weft.ErrUnknown): // it may have been applied, or may still be: once
		return fmt.Errorf("read before you say %s again: %w", word, err)
	case err != nil: // it is not applied, and never will be
		return fmt.Errorf("say %s again: %w", word, err)
	}
	fmt.Printf("%s: %v\n", word, result.Value)
	return words.View(ctx, func(s spoken) { fmt.Println("all words:", len(s)) })
}

func run() error {
	id := flag.Uint64("id", 1, "this node: 1, 2 or 3")
	dir := flag.String("data", "", "directory of this node (default: data-ID)")
	word := flag.String("say", "hello", "the word to say")
	flag.Parse()
	if *dir == "" {
		*dir = fmt.Sprintf("data-%d", *id)
	}
	node, err := weft.Open(weft.Options{
		Cluster: 7, ID: *id, Dir: *dir,
		Peers: map[uint64]string{1: "127.0.0.1:7001", 2: "127.0.0.1:7002", 3: "127.0.0.1:7003"},
	})
	if err != nil {
		return err
	}
	words, err := weft.Replicate(node, 1, newSpoken)
	if err != nil {
		return errors.Join(err, node.Close(context.Background()))
	}
	ctx, stop := signal.NotifyContext(context.Background(), os.Interrupt)
	defer stop()
	limited, cancel := context.WithTimeout(ctx, time.Minute) // until two of the three are there
	err = say(limited, words, *word)
	cancel()
	if err == nil {
		<-ctx.Done() // serve the others until the user ends this
	}
	ending, cancel := context.WithTimeout(context.Background(), 10*time.Second)
	defer cancel()
	return errors.Join(err, node.Close(ending))
}

func main() {
	if err := run(); err != nil {
		log.Fatal(err)
	}
}
