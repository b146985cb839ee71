// Copyright 2026 The Weft Authors
// SPDX-License-Identifier: Apache-2.0

// Command kv is a replicated key-value store over HTTP, in one file, for reading: a state
// with three methods, a node with one group, and handlers. It has what a small service
// needs: linearizable reads at any node, conditional writes, definite answers, members that
// come and go by id and address, and an orderly end.
//
//	go build -o bin/kv ./examples/kv
//	PEERS=1=127.0.0.1:7001,2=127.0.0.1:7002,3=127.0.0.1:7003
//	bin/kv -id 1 -dir data/kv-1 -peers $PEERS -http 127.0.0.1:8001 &
//	bin/kv -id 2 -dir data/kv-2 -peers $PEERS -http 127.0.0.1:8002 &
//	bin/kv -id 3 -dir data/kv-3 -peers $PEERS -http 127.0.0.1:8003 &
//	curl -X PUT --data-binary @LICENSE 127.0.0.1:8001/kv/license
//	curl 127.0.0.1:8002/kv/license
//
// A fourth node is started with the address of any member, and then added:
//
//	bin/kv -id 4 -dir data/kv-4 -join -peers 1=127.0.0.1:7001 -listen 127.0.0.1:7004 -http 127.0.0.1:8004 &
//	curl -X PUT --data 127.0.0.1:7004 127.0.0.1:8001/members/4
//
// What is left out for brevity: certificates (weft.Options.TLS), metrics (package metrics),
// backups (weft.Restore), and sessions, by which a client may repeat a write whose outcome is
// not known (package state). kvdemo, in cmd/kvdemo, has these.
package main

import (
	"context"
	"encoding/json"
	"errors"
	"flag"
	"fmt"
	"io"
	"log"
	"log/slog"
	"net/http"
	"os"
	"os/signal"
	"strconv"
	"strings"
	"syscall"
	"time"
	"unicode/utf8"

	"github.com/weftraft/weft"
)

const (
	patience      = 10 * time.Second // of a request, and of an orderly end
	maxKeyBytes   = 1 << 10
	maxValueBytes = 1 << 20
)

// table is the replicated state. All nodes apply the same commands in the same order and come
// to the same table, so nothing in it may depend on a clock, on chance, or on a node.
type table struct {
	Entries map[string]entry
	Changes uint64 // of all keys, ever
}

// entry is a value, and which of the changes has made it: clients make writes conditional on
// that number, which no other value ever has.
type entry struct {
	Value   []byte
	Version uint64
}

// command is what is replicated.
type command struct {
	Key    string
	Value  []byte
	Delete bool    // removes the key
	If     *uint64 // unless nil, the version that the key must have; 0: the key must not be there
}

// outcome is the result of a command, for the caller of Propose.
type outcome struct {
	refused bool
	version uint64 // of the key, afterwards
}

// Apply changes the table by one command.
func (t *table) Apply(data []byte) any {
	var c command
	if err := json.Unmarshal(data, &c); err != nil {
		return fmt.Errorf("not a command: %w", err) // a result: all nodes refuse the command alike
	}
	old := t.Entries[c.Key]
	if c.If != nil && *c.If != old.Version {
		return outcome{refused: true, version: old.Version}
	}
	t.Changes++
	if c.Delete {
		delete(t.Entries, c.Key)
		return outcome{}
	}
	t.Entries[c.Key] = entry{Value: c.Value, Version: t.Changes}
	return outcome{version: t.Changes}
}

// Write writes the table, for checkpoints, for other nodes and for backups. Commands wait
// meanwhile; a larger table would have a method Fork (state.Forker).
func (t *table) Write(w io.Writer) error { return json.NewEncoder(w).Encode(t) }

// Read fills an empty table with what Write has written.
func (t *table) Read(r io.Reader) error { return json.NewDecoder(r).Decode(t) }

func newTable() *table { return &table{Entries: map[string]entry{}} }

// server answers HTTP requests at one node.
type server struct{ group *weft.Replicated[*table] }

func (s *server) handler() http.Handler {
	mux := http.NewServeMux()
	mux.Handle("GET /kv/{key...}", handler(s.get))
	mux.Handle("PUT /kv/{key...}", handler(s.put))
	mux.Handle("DELETE /kv/{key...}", handler(s.remove))
	mux.Handle("GET /members", handler(s.members))
	mux.Handle("PUT /members/{id}", handler(s.addMember))
	mux.Handle("DELETE /members/{id}", handler(s.removeMember))
	return mux
}

// handler answers a request in time. Its error says whether the request has had its effect.
type handler func(http.ResponseWriter, *http.Request) error

func (h handler) ServeHTTP(w http.ResponseWriter, r *http.Request) {
	ctx, cancel := context.WithTimeout(r.Context(), patience)
	defer cancel()
	err := h(w, r.WithContext(ctx))
	status := http.StatusServiceUnavailable // no effect: try again, here or at another node
	switch {
	case err == nil:
		return
	case errors.Is(err, weft.ErrUnknown): // it may have an effect, once: read before trying again
		status = http.StatusGatewayTimeout
	case errors.Is(err, weft.ErrInvalid), errors.Is(err, weft.ErrAddress), errors.Is(err, weft.ErrRemoved):
		status = http.StatusBadRequest
	case errors.Is(err, weft.ErrUnsafeChange):
		status = http.StatusConflict
	}
	http.Error(w, err.Error(), status)
}

// get reads linearizably at this node: what any node has acknowledged before is seen.
func (s *server) get(w http.ResponseWriter, r *http.Request) error {
	var e entry
	if err := s.group.View(r.Context(), func(t *table) { e = t.Entries[r.PathValue("key")] }); err != nil {
		return err
	}
	w.Header().Set("ETag", etag(e.Version))
	if e.Version == 0 {
		http.NotFound(w, r)
		return nil
	}
	_, _ = w.Write(e.Value) // a client that is gone needs no answer
	return nil
}

func (s *server) put(w http.ResponseWriter, r *http.Request) error {
	value, err := body(w, r, maxValueBytes)
	if err != nil {
		return err
	}
	return s.change(w, r, command{Value: value})
}

func (s *server) remove(w http.ResponseWriter, r *http.Request) error {
	return s.change(w, r, command{Delete: true})
}

// change replicates a command for the key of a request. With a header If-Match: "3" the key
// must have version 3; "0" means that the key must not be there.
func (s *server) change(w http.ResponseWriter, r *http.Request, c command) error {
	c.Key = r.PathValue("key")
	if c.Key == "" || len(c.Key) > maxKeyBytes {
		return fmt.Errorf("%w: the key has %d bytes, want 1 to %d", weft.ErrInvalid, len(c.Key), maxKeyBytes)
	}
	if !utf8.ValidString(c.Key) {
		return fmt.Errorf("%w: the key %q is not UTF-8, and JSON, in which commands travel, would change it; encode the key, for example as hex", weft.ErrInvalid, c.Key)
	}
	if match := r.Header.Get("If-Match"); match != "" {
		version, err := number("If-Match", strings.Trim(match, `"`))
		if err != nil {
			return err
		}
		c.If = &version
	}
	data, err := json.Marshal(c)
	if err != nil {
		return err
	}
	result, err := s.group.Propose(r.Context(), data)
	if err != nil {
		return err
	}
	o := result.Value.(outcome) // not an error, because data is a command
	w.Header().Set("ETag", etag(o.version))
	if o.refused {
		http.Error(w, fmt.Sprintf("the key has version %d", o.version), http.StatusPreconditionFailed)
		return nil
	}
	w.WriteHeader(http.StatusNoContent)
	return nil
}

// members shows who is there and who leads.
func (s *server) members(w http.ResponseWriter, _ *http.Request) error {
	state := s.group.State()
	for _, m := range state.Members {
		_, _ = fmt.Fprintf(w, "%d %s voter=%t leader=%t\n", m.ID, m.Address, m.Voter, m.ID == state.Leader)
	}
	return nil
}

// addMember adds the node whose address is the request's body, once that node has the state.
// A request that ends before may be repeated.
func (s *server) addMember(w http.ResponseWriter, r *http.Request) error {
	id, err := number("the member's id", r.PathValue("id"))
	if err != nil {
		return err
	}
	address, err := body(w, r, weft.MaxAddressBytes)
	if err != nil {
		return err
	}
	return s.group.AddVoter(r.Context(), id, string(address))
}

func (s *server) removeMember(_ http.ResponseWriter, r *http.Request) error {
	id, err := number("the member's id", r.PathValue("id"))
	if err != nil {
		return err
	}
	return s.group.Remove(r.Context(), id)
}

func etag(version uint64) string { return fmt.Sprintf(`"%d"`, version) }

func number(name, text string) (uint64, error) {
	n, err := strconv.ParseUint(text, 10, 64)
	if err != nil {
		return 0, fmt.Errorf("%w: %s is %q, want a number", weft.ErrInvalid, name, text)
	}
	return n, nil
}

func body(w http.ResponseWriter, r *http.Request, limit int64) ([]byte, error) {
	b, err := io.ReadAll(http.MaxBytesReader(w, r.Body, limit))
	if err != nil {
		return nil, fmt.Errorf("%w: the body: %w, want at most %d bytes", weft.ErrInvalid, err, limit)
	}
	return b, nil
}

func main() {
	o := weft.Options{Cluster: 1, Peers: map[uint64]string{}, Logger: slog.Default()}
	flag.Uint64Var(&o.ID, "id", 0, "this node's id, which no other node has had")
	flag.StringVar(&o.Dir, "dir", "", "this node's directory")
	flag.StringVar(&o.Listen, "listen", "", "where to listen for nodes, HOST:PORT (default: this node's address in -peers)")
	flag.BoolVar(&o.Join, "join", false, "wait to be added to the cluster of -peers")
	flag.Func("peers", "the first members, or members to ask: ID=HOST:PORT,...", func(list string) error {
		for part := range strings.SplitSeq(list, ",") {
			id, address, _ := strings.Cut(part, "=")
			n, err := number("ID in ID=HOST:PORT", id)
			if err != nil {
				return err
			}
			o.Peers[n] = address
		}
		return nil
	})
	client := flag.String("http", "127.0.0.1:8001", "where to listen for clients")
	flag.Parse()
	if err := serve(o, *client); err != nil {
		log.Fatal("kv: ", err)
	}
}

// serve runs a node until the process is told to end, or the node fails.
func serve(o weft.Options, client string) error {
	ctx, stop := signal.NotifyContext(context.Background(), os.Interrupt, syscall.SIGTERM)
	defer stop()
	node, err := weft.Open(o)
	if err != nil {
		return err
	}
	group, err := weft.Replicate(node, 1, newTable) // a service may have several groups
	if err != nil {
		return errors.Join(err, node.Close(ctx))
	}
	s := &http.Server{Addr: client, Handler: (&server{group}).handler(), ReadHeaderTimeout: patience}
	ended := make(chan error, 1)
	go func() { ended <- s.ListenAndServe() }()
	select {
	case err = <-ended: // the address cannot be used
	case <-group.Done(): // the disk has failed, for example
		err = group.Err()
	case <-ctx.Done():
	}
	leave, cancel := context.WithTimeout(context.Background(), patience)
	defer cancel()
	err = errors.Join(err, s.Shutdown(leave))  // requests that are under way end
	return errors.Join(err, node.Close(leave)) // another node leads, and the state is closed
}
