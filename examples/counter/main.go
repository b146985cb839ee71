// Copyright 2026 The Weft Authors
// SPDX-License-Identifier: Apache-2.0

// Command counter is the service in README: replicated counters over HTTP, by three
// processes. A test runs it as README says.
package main

import (
	"encoding/json"
	"errors"
	"flag"
	"fmt"
	"io"
	"log"
	"net/http"
	"unicode/utf8"

	"github.com/weftraft/weft"
)

type counters map[string]int // the replicated state: all nodes have the same

func (c counters) Apply(command []byte) any {
	if !utf8.Valid(command) { // JSON would change such a name
		return errors.New("the name is not UTF-8")
	}
	c[string(command)]++
	return c[string(command)] // the result, for the caller of Propose
}
func (c counters) Write(w io.Writer) error { return json.NewEncoder(w).Encode(c) } // to disk, or to another node
func (c counters) Read(r io.Reader) error  { return json.NewDecoder(r).Decode(&c) }

func main() {
	id := flag.Uint64("id", 1, "this node: 1, 2 or 3")
	flag.Parse()
	dir := fmt.Sprint("data/counter-", *id)
	peers := map[uint64]string{1: "127.0.0.1:7001", 2: "127.0.0.1:7002", 3: "127.0.0.1:7003"}
	node := must(weft.Open(weft.Options{Cluster: 7, ID: *id, Dir: dir, Peers: peers}))
	group := must(weft.Replicate(node, 1, func() counters { return counters{} }))
	http.HandleFunc("POST /{name}", func(w http.ResponseWriter, r *http.Request) {
		result, err := group.Propose(r.Context(), []byte(r.PathValue("name")))
		answer(w, result.Value, err)
	})
	http.HandleFunc("GET /{name}", func(w http.ResponseWriter, r *http.Request) {
		var n int // as of now: what any node has acknowledged is counted
		err := group.View(r.Context(), func(c counters) { n = c[r.PathValue("name")] })
		answer(w, n, err)
	})
	log.Fatal(http.ListenAndServe(fmt.Sprintf("127.0.0.1:%d", 8000+*id), nil))
}

// answer answers a request with a value, or says why there is none.
func answer(w http.ResponseWriter, value any, err error) {
	if refused, ok := value.(error); ok {
		http.Error(w, refused.Error(), http.StatusBadRequest)
		return
	}
	if err != nil {
		http.Error(w, err.Error(), http.StatusServiceUnavailable)
		return
	}
	_, _ = fmt.Fprintln(w, value) // a client that is gone needs no answer
}

// must returns a value, or ends the program.
func must[T any](v T, err error) T {
	if err != nil {
		log.Fatal(err)
	}
	return v
}
