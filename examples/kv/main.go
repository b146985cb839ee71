// Copyright 2026 The Weft Authors
// SPDX-License-Identifier: Apache-2.0

// Command kv is a replicated key-value store over HTTP, in one file, for reading: a state
// with three methods, a node with one group, and handlers. It has what a small service
// needs: linearizable reads at any node, conditional writes, definite answers, members that
// come and go by id and address, backups, and an orderly end.
//
//	PEERS=1=127.0.0.1:7001,2=127.0.0.1:7002,3=127.0.0.1:7003
//	kv -id 1 -dir data/1 -peers $PEERS -http 127.0.0.1:8001 &
//	kv -id 2 -dir data/2 -peers $PEERS -http 127.0.0.1:8002 &
//	kv -id 3 -dir data/3 -peers $PEERS -http 127.0.0.1:8003 &
//	curl -X PUT --data-binary @LICENSE 127.0.0.1:8001/kv/license
//	curl 127.0.0.1:8002/kv/license
//
// A fourth node is started with the address of any member, and then added:
//
//	kv -id 4 -dir data/4 -join -peers 1=127.0.0.1:7001 -listen 127.0.0.1:7004 -http 127.0.0.1:8004 &
//	curl -X PUT --data 127.0.0.1:7004 127.0.0.1:8001/members/4
//
// What is left out for brevity: certificates (weft.Options.TLS), metrics (package metrics), and
// sessions, by which a client may repeat a write whose outcome it does not know (package
// state). kvdemo, in cmd/kvdemo, has these.
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

	"github.com/weftraft/weft"
)

const (
	group     = 1               // a service may have several; this one has one
	patience  = 5 * time.Second // of a request
	leaveTime = 10 * time.Second

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
	Key   string
	Value []byte
	// Delete removes the key.
	Delete bool
	// If, unless nil, is the version that the key must have; 0: it must not be there.
	If *uint64
}

// outcome is the result of a command, for the caller of Propose.
type outcome struct {
	changed bool
	version uint64 // of the key, afterwards
}

// Apply changes the table by one command.
func (t *table) Apply(data []byte) any {
	var c command
	if err := json.Unmarshal(data, &c); err != nil {
		return fmt.Errorf("not a command: %w", err) // a result: all nodes refuse the command alike
	}
	old := t.Entries[c.Key]
	if c.If != nil && *c.If != old.Version || c.Delete && old.Version == 0 {
		return outcome{version: old.Version}
	}
	t.Changes++
	if c.Delete {
		delete(t.Entries, c.Key)
		return outcome{changed: true}
	}
	t.Entries[c.Key] = entry{Value: c.Value, Version: t.Changes}
	return outcome{changed: true, version: t.Changes}
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
	mux.HandleFunc("GET /kv/{key...}", s.get)
	mux.HandleFunc("PUT /kv/{key...}", s.put)
	mux.HandleFunc("DELETE /kv/{key...}", s.remove)
	mux.HandleFunc("GET /members", s.members)
	mux.HandleFunc("PUT /members/{id}", s.addMember)
	mux.HandleFunc("DELETE /members/{id}", s.removeMember)
	mux.HandleFunc("GET /backup", s.backup)
	return mux
}

// get reads linearizably at this node: what any node has acknowledged before is seen. With
// ?local the answer is what this node has, however old, and comes without a majority, too.
func (s *server) get(w http.ResponseWriter, r *http.Request) {
	ctx, cancel := context.WithTimeout(r.Context(), patience)
	defer cancel()
	var options []weft.ReadOption
	if r.URL.Query().Has("local") {
		options = append(options, weft.Local())
	}
	var e entry
	if err := s.group.View(ctx, func(t *table) { e = t.Entries[r.PathValue("key")] }, options...); err != nil {
		fail(w, err)
		return
	}
	w.Header().Set("ETag", etag(e.Version))
	if e.Version == 0 {
		http.Error(w, "no such key", http.StatusNotFound)
		return
	}
	_, _ = w.Write(e.Value) // a client that is gone needs no answer
}

func (s *server) put(w http.ResponseWriter, r *http.Request) {
	value, err := io.ReadAll(http.MaxBytesReader(w, r.Body, maxValueBytes))
	if err != nil {
		http.Error(w, fmt.Sprintf("the value: %v; want at most %d bytes", err, maxValueBytes), http.StatusRequestEntityTooLarge)
		return
	}
	s.change(w, r, command{Value: value})
}

func (s *server) remove(w http.ResponseWriter, r *http.Request) {
	s.change(w, r, command{Delete: true})
}

// change replicates a command for the key of a request. With a header If-Match: "3" the key
// must have version 3; "0" means that the key must not be there.
func (s *server) change(w http.ResponseWriter, r *http.Request, c command) {
	c.Key = r.PathValue("key")
	if c.Key == "" || len(c.Key) > maxKeyBytes {
		http.Error(w, fmt.Sprintf("the key has %d bytes, want 1 to %d", len(c.Key), maxKeyBytes), http.StatusBadRequest)
		return
	}
	if match := r.Header.Get("If-Match"); match != "" {
		version, err := strconv.ParseUint(strings.Trim(match, `"`), 10, 64)
		if err != nil {
			http.Error(w, fmt.Sprintf("If-Match is %s, want the ETag of an answer", match), http.StatusBadRequest)
			return
		}
		c.If = &version
	}
	data, err := json.Marshal(c)
	if err != nil {
		fail(w, err)
		return
	}
	ctx, cancel := context.WithTimeout(r.Context(), patience)
	defer cancel()
	result, err := s.group.Propose(ctx, data)
	if err != nil {
		fail(w, err)
		return
	}
	switch o := result.Value.(type) {
	case error:
		http.Error(w, o.Error(), http.StatusBadRequest)
	case outcome:
		w.Header().Set("ETag", etag(o.version))
		switch {
		case o.changed:
			w.WriteHeader(http.StatusNoContent)
		case c.If != nil:
			http.Error(w, fmt.Sprintf("the key has version %d", o.version), http.StatusPreconditionFailed)
		default:
			http.Error(w, "no such key", http.StatusNotFound)
		}
	}
}

func etag(version uint64) string { return fmt.Sprintf("%q", strconv.FormatUint(version, 10)) }

// members shows who is there and who leads.
func (s *server) members(w http.ResponseWriter, _ *http.Request) {
	state := s.group.State()
	for _, m := range state.Members {
		role := "learner"
		if m.Voter {
			role = "voter"
		}
		if m.ID == state.Leader {
			role = "leader"
		}
		_, _ = fmt.Fprintf(w, "%d %s %s\n", m.ID, m.Address, role)
	}
}

// addMember adds the node whose address is the request's body; with ?replace=ID in the place of
// a member. It takes as long as the node needs to get the state.
func (s *server) addMember(w http.ResponseWriter, r *http.Request) {
	s.changeMember(w, r, func(id uint64) error {
		address, err := io.ReadAll(http.MaxBytesReader(w, r.Body, weft.MaxAddressBytes))
		if err != nil {
			return fmt.Errorf("%w: %w", weft.ErrAddress, err)
		}
		if old := r.URL.Query().Get("replace"); old != "" {
			leaves, err := strconv.ParseUint(old, 10, 64)
			if err != nil {
				return fmt.Errorf("%w: replace is %q, want the id of a member", weft.ErrInvalid, old)
			}
			return s.group.Replace(r.Context(), leaves, id, string(address))
		}
		return s.group.AddVoter(r.Context(), id, string(address))
	})
}

func (s *server) removeMember(w http.ResponseWriter, r *http.Request) {
	s.changeMember(w, r, func(id uint64) error { return s.group.Remove(r.Context(), id) })
}

func (s *server) changeMember(w http.ResponseWriter, r *http.Request, change func(id uint64) error) {
	id, err := strconv.ParseUint(r.PathValue("id"), 10, 64)
	if err == nil {
		err = change(id)
	} else {
		err = fmt.Errorf("%w: the id of a member is %q, want a number", weft.ErrInvalid, r.PathValue("id"))
	}
	if err != nil {
		fail(w, err)
		return
	}
	s.members(w, r)
}

// backup sends a copy of the state while commands go on; kv -restore begins a new cluster with
// it. A copy that was cut off is refused there.
func (s *server) backup(w http.ResponseWriter, r *http.Request) {
	if _, err := s.group.Snapshot(r.Context(), w); err != nil {
		log.Printf("a backup was cut off: %v", err)
		panic(http.ErrAbortHandler) // the client hears that the rest does not come
	}
}

// fail says what an error means to a client: whether the request has had its effect.
func fail(w http.ResponseWriter, err error) {
	status := http.StatusServiceUnavailable // no effect: try again, here or at another node
	switch {
	case errors.Is(err, weft.ErrUnknown): // it may have an effect, once: read before trying again
		status = http.StatusGatewayTimeout
	case errors.Is(err, weft.ErrInvalid), errors.Is(err, weft.ErrAddress), errors.Is(err, weft.ErrRemoved):
		status = http.StatusBadRequest
	case errors.Is(err, weft.ErrUnsafeChange):
		status = http.StatusConflict
	}
	http.Error(w, err.Error(), status)
}

func main() {
	o := weft.Options{Cluster: 1, Peers: map[uint64]string{}, Logger: slog.Default()}
	flag.Uint64Var(&o.Cluster, "cluster", o.Cluster, "the cluster's number, the same at all nodes")
	flag.Uint64Var(&o.ID, "id", 0, "this node's id, which no other node has had")
	flag.StringVar(&o.Dir, "dir", "", "this node's directory")
	flag.StringVar(&o.Listen, "listen", "", "where to listen for nodes, HOST:PORT (default: this node's address in -peers)")
	flag.BoolVar(&o.Join, "join", false, "wait to be added to the cluster of -peers")
	flag.Func("peers", "the first members, or members to ask: ID=HOST:PORT,...", func(list string) error {
		for part := range strings.SplitSeq(list, ",") {
			id, address, _ := strings.Cut(part, "=")
			n, err := strconv.ParseUint(id, 10, 64)
			if err != nil {
				return fmt.Errorf("%q, want ID=HOST:PORT", part)
			}
			o.Peers[n] = address
		}
		return nil
	})
	client := flag.String("http", "127.0.0.1:8001", "where to listen for clients")
	backup := flag.String("restore", "", "begin a new cluster with a backup in this `FILE`, and end; run it for each first member")
	flag.Parse()
	run := func() error { return serve(o, *client) }
	if *backup != "" {
		run = func() error { return restore(o, *backup) }
	}
	if err := run(); err != nil {
		log.Fatal("kv: ", err)
	}
}

// serve runs a node until the process is told to end, or the node fails.
func serve(o weft.Options, client string) (err error) {
	ctx, stop := signal.NotifyContext(context.Background(), os.Interrupt, syscall.SIGTERM)
	defer stop()
	node, err := weft.Open(o)
	if err != nil {
		return err
	}
	defer func() { // hands leadership over, and closes the state, too
		ctx, cancel := context.WithTimeout(context.Background(), leaveTime)
		defer cancel()
		err = errors.Join(err, node.Close(ctx))
	}()
	g, err := weft.Replicate(node, group, newTable)
	if err != nil {
		return err
	}
	s := &http.Server{Addr: client, Handler: (&server{g}).handler(), ReadHeaderTimeout: patience}
	ended := make(chan error, 1)
	go func() { ended <- s.ListenAndServe() }()
	select {
	case err = <-ended: // the address cannot be used
		return err
	case <-g.Done(): // the disk has failed, for example
		err = g.Err()
	case <-ctx.Done():
	}
	ctx, cancel := context.WithTimeout(context.Background(), leaveTime)
	defer cancel()
	return errors.Join(err, s.Shutdown(ctx)) // requests that are under way end
}

// restore begins a new cluster at this node with a backup.
func restore(o weft.Options, file string) error {
	f, err := os.Open(file)
	if err != nil {
		return err
	}
	defer func() { _ = f.Close() }() // it was only read
	empty, err := weft.OpenMemory(o, group, newTable)
	if err != nil {
		return err
	}
	info, err := weft.Restore(o, group, empty, f)
	if err == nil {
		fmt.Printf("restored the state at index %d of cluster %d\n", info.Index, info.Cluster)
	}
	return errors.Join(err, empty.Close())
}
